// A picture of a page as it opens: `picture.mjs PAGE OUT`.

import { closeBrowser, drawn, openPage } from "./browser.mjs";

const [, , file, out] = process.argv;
const { page, faults } = await openPage(file, { overview: true, viewport: { width: 1440, height: 1000 } });
await drawn(page);
await page.screenshot({ path: out });
await closeBrowser();
if (faults.length > 0) throw new Error(faults.join("\n"));
