// What can be read on a page: text of elements and on canvases, with its colour and what is behind it.

// From now on, notes what is written on canvases until they are cleared.
export function watchCanvases(page) {
  return page.evaluate(() => {
    const { fillText, clearRect } = CanvasRenderingContext2D.prototype;
    const written = (window.written = new Map());
    CanvasRenderingContext2D.prototype.clearRect = function (...box) {
      written.set(this.canvas, []);
      return clearRect.apply(this, box);
    };
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
      const width = this.measureText(text).width;
      const left = x - { start: 0, left: 0, center: width / 2, right: width }[this.textAlign];
      const { a: scale } = this.getTransform();
      const at = (part) => [...this.getImageData((left + width * part) * scale, y * scale, 1, 1).data];
      // Five places, because lines may cross the text.
      const behind = text === "" ? [] : [0.1, 0.3, 0.5, 0.7, 0.9].map(at);
      if (text !== "") written.get(this.canvas)?.push({ text, left, width, y, colour: this.fillStyle, behind });
      return fillText.call(this, text, x, y);
    };
  });
}

// The texts on a canvas since it was cleared, with their places, and whether nothing below shows through.
export function textsOn(page, selector) {
  return page.evaluate((selector) => {
    const texts = window.written.get(document.querySelector(selector)) ?? [];
    return texts.map(({ text, left, width, y, behind }) => ({ text, left, width, y, covers: behind.every(([, , , alpha]) => alpha === 255) }));
  }, selector);
}

// Texts with less contrast than `least` to 1 to what is behind them, in words.
export function faintTexts(page, least) {
  return page.evaluate((least) => {
    const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const channels = (css) => {
      probe.clearRect(0, 0, 1, 1);
      probe.fillStyle = css;
      probe.fillRect(0, 0, 1, 1);
      return [...probe.getImageData(0, 0, 1, 1).data];
    };
    const over = (top, bottom) => [0, 1, 2].map((at) => (top[at] * top[3] + bottom[at] * (255 - top[3])) / 255);
    const luminance = (colour) => {
      const [r, g, b] = colour.map((part) => part / 255).map((part) => (part <= 0.04 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const contrast = (a, b) => {
      const [low, high] = [luminance(a), luminance(b)].sort((a, b) => a - b);
      return (high + 0.05) / (low + 0.05);
    };
    // All that can be behind the text of an element: a gradient has several colours.
    const behind = (element) => {
      if (!element) return [[255, 255, 255]];
      const { backgroundColor, backgroundImage } = getComputedStyle(element);
      const plain = channels(backgroundColor);
      const below = plain[3] === 255 ? [plain.slice(0, 3)] : behind(element.parentElement).map((under) => over(plain, under));
      const gradient = (backgroundImage.match(/(color|rgba?)\([^()]*\)/g) ?? []).map(channels);
      return gradient.length === 0 ? below : below.flatMap((under) => gradient.map((top) => over(top, under)));
    };
    const faint = [];
    const check = (name, colour, backs) => {
      const ratio = Math.min(...backs.map((back) => contrast(over(colour, back), back)));
      if (ratio < least) faint.push(`${name}: ${ratio.toFixed(2)}`);
    };
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const { parentElement: element, textContent: text } = walker.currentNode;
      if (text.trim() === "" || !element.checkVisibility()) continue;
      check(`${element.className || element.tagName} "${text.trim().slice(0, 30)}"`, channels(getComputedStyle(element).color), behind(element));
    }
    for (const input of document.querySelectorAll("input[placeholder]")) {
      if (input.checkVisibility()) check(`placeholder "${input.placeholder}"`, channels(getComputedStyle(input, "::placeholder").color), behind(input));
    }
    const page = behind(document.body)[0];
    for (const [canvas, texts] of window.written) {
      if (!canvas.isConnected || !canvas.checkVisibility()) continue;
      for (const { text, colour, behind } of texts) {
        const ratios = behind.map((back) => contrast(channels(colour).slice(0, 3), over(back, page))).sort((a, b) => a - b);
        if (ratios[2] < least) faint.push(`canvas "${text}" ${colour}: ${ratios[2].toFixed(2)}`);
      }
    }
    return faint;
  }, least);
}
