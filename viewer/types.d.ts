// The shapes of things that several modules know, for the type checker and for readers. The
// recording itself is written by `crates/ggprof-report/src/viewer/`.

type Recording = import("./data/recording.js").Recording;
type DeviceWork = import("./data/device.js").DeviceWork;
type Scene = import("./layout/scene.js").Scene;
type Store = import("./state.js").Store;
type Actions = import("./interact/actions.js").Actions;
type Theme = ReturnType<typeof import("./draw/canvas.js").theme>;

/** Whether an event is one of those that are looked for. */
type Question = (event: number) => boolean;

type Column = Uint8Array | Uint16Array | Uint32Array | Float64Array;
type Columns = { [name: string]: Column };

/** A part of the time, in nanoseconds after the first event. */
type Span = { start: number; end: number };

/** `op` and `shape` are numbers of texts. */
type Signature = { op: number; shape: number; sub: string | null; extra: string | null; output: string; sources: string[]; flops: number | null; moved: number | null };
/** Time of which nothing is known, and how many graph runs are missing; 0 where that is not known. */
// Without a number of graph runs, the process was not there.
type Unrecorded = Span & { runs: number | null };
/** A process of several, its machine where there are several, and when it was not recorded. */
type Process = { label: string; host: string | null; unrecorded: Unrecorded[] };
type Backend = {
  /** Whose it is, in a page of several processes. */
  process: number | null;
  label: string; name: string; type: string;
  /** What it is called among those of its process. */
  device: string; busy: number | null; copying: number | null; idle: number | null;
  /** The part of `copying` that is estimated, because only the calls were timed. */
  estimated: number;
  /** What was measured of its device, in GB/s and GFLOP/s. */
  peak: { bandwidth: number | null; compute: number | null } | null;
};

type BackendTimes = { busy: number; copying: number; idle: number; inRange: boolean };

/** The wall time of a phase; its rows add up to it. */
type Budget = { title: string; unit: string; units: number; wall: number; spans: [number, number][]; rows: { spent: string; backend: number | null; words: string; ns: number; estimated: number }[] };
type Finding = { text: string; lines: [string, string][]; share: number; spans: [number, number][]; example: [number, number] | null };
/** Layer, part of the model, backend, nanoseconds, calls, how much of the time is estimated. */
type MapCell = [number | null, number, number, number, number, number];
/** A table as people read it. */
type WordTable = { columns: { title: string; right: boolean }[]; rows: string[][] };
type Overview = {
  budgets: Budget[]; findings: Finding[]; healthy: boolean; nothingFound: string | null; notSeen: string[]; placement: { kind: number | null; cells: MapCell[] }[];
  /** What costs too little to be a finding, and how far phases are from what their devices can do. */
  small: { text: string; lines: [string, string][] }[]; limits: string[];
  tables: { title: string; table: WordTable | null; notes: string[] }[];
};
/** The groups it is in, nanoseconds, their standard error, calls that it adds, calls whose time it is. */
type Estimate = [number[], number, number | null, number, number];
type Phase = Span & { label: string; kind: number; runs: number; tokens: number; rate: number | null };
type ServedRequest = Span & {
  /** Of one that began before the recording, only what it generated is known. */
  number: number; prompt: number | null; reused: number | null; chunks: number | null; first: number | null; generated: number; rate: number | null;
  /** Median and 95th percentile of the time between its tokens, the longest such time, and what that was spent on. */
  waits: [number, number] | null; longest: number | null; for: string | null; warmUp: boolean; beganBefore: boolean;
};
type Stall = Span & { request: number; cause: number; for: string };
type Task = { what: string; name: string; thread: number; run: number | null; start: number; duration: number };

/** What became how much when, by time; it holds until the next. */
type Levels = { group: string; label: string; unit: string; times: number[]; values: number[] };

/** How often each expert of a layer was used; a use is a token or, where copies tell, a graph run. */
type ExpertLayer = { phase: string | null; layer: number | null; byCopies: boolean; runs: number; tokens: number; read: number; evenness: number | null; uses: number[] };
/** Graph runs of prompts or of a generation by their context. Slopes are nanoseconds for 1,000 tokens. */
type Depth = {
  label: string;
  exact: boolean;
  slope: { token: number | null; attention: number | null };
  steps: { depth: number; text: string }[];
  /** `parts`: by how much the time of a run was divided to get that of a token. */
  points: { depth: number[]; start: number[]; parts: number[]; token: number[]; attention: (number | null)[] };
};

type Tables = {
  title: string;
  facts: [string, string][];
  warnings: { text: string; loss: boolean }[];
  wall: number;
  /** Times of which nothing is recorded, of any process. */
  unrecorded: Unrecorded[];
  /** Milliseconds since 1970 at the first event; null where that is not known. */
  clock: number | null;
  drawn: number | null;
  /** Empty for the recording of one. */
  processes: Process[];
  backends: Backend[];
  phases: Phase[];
  requests: { list: ServedRequest[]; stalls: Stall[] };
  runs: { start: number[]; end: number[]; done: number[]; scheduler: number[]; number: number[]; phase: number[]; tokens: (number | null)[]; requests: number[][] };
  nodes: { signature: number[]; name: (string | null)[]; sources: string[][] };
  ops: string[];
  shapes: string[];
  signatures: Signature[];
  kernels: string[];
  tasks: Task[];
  overview: Overview;
  estimates: { [grouping: string]: Estimate[] };
  levels: Levels[];
  experts: ExpertLayer[];
  depth: Depth[];
  measured: string[];
  modules: string[];
};

/** Things that do not overlap, by start; `events` says which they are. */
type Lane = { starts: Float64Array; durations: Float64Array; events: Uint32Array; longest: Uint32Array; busy: Float64Array; waits?: Float64Array };

/** How the things of a lane are drawn. */
type Look = {
  colour: (thing: number) => string;
  label: (thing: number) => string | string[];
  labels: boolean;
  alpha: number;
  shade?: (thing: number) => number;
  parts?: (thing: number) => string[];
  tip?: (thing: number) => string[];
};

/** A row of the timeline: of events (`lane`), of other things (`spans`), of rates (`lanes`), or of `levels`. */
type Row = {
  kind: "band" | "phases" | "runs" | "requests" | "group" | "fold" | "lane" | "thread" | "stream" | "counter";
  label: string;
  what?: string;
  key: string;
  backend?: number;
  process?: number;
  top?: boolean;
  pinned?: boolean;
  /** Whose it is, where it stands apart from its group. */
  of?: string;
  collapsed?: boolean;
  /** The row that opens and closes it. */
  foldedBy?: string;
  /** Where it is not that of its kind; and how many rows below go on with it. */
  height?: number;
  joined?: number;
  /** Its name on the timeline, if that is another. */
  shown?: string;
  group?: Group;
  lane?: Lane;
  spans?: Lane;
  look?: Look;
  eventOf?: (thing: number) => number;
  lanes?: Lane[];
  amounts?: Float64Array[];
  perSecond?: number;
  /** A rate or level with its unit. */
  words?: (value: number) => string;
  levels?: Levels;
};
type CounterRow = Row & Required<Pick<Row, "lanes" | "amounts" | "perSecond" | "what" | "words">>;
type LaneRow = Row & Required<Pick<Row, "lane">>;
type PlacedRow = Row & { y: number; height: number; fixed: boolean };
/** A process: its name, and one row for all that it did. */
type Band = { key: string; label: string; summary: Row };
type Group = { key: string; label: string; backend: Backend | null; band: Band | null; summary: Row; rows: Row[] };

/** Where on a canvas, and with what, something is drawn above the timeline. */
type Place = { context: CanvasRenderingContext2D; width: number; height: number; colours: Theme; toX: (time: number) => number };
/** A line of the statistics. */
type Total = {
  name: string; level: Level; path: Path; leaf: boolean; children: () => Total[]; opened?: Total[];
  count: number; timed: number; total: number; isTimed: boolean; estimated: number; error: number | null; share: number; average: number; min: number; p50: number; p95: number; max: number;
  bandwidth: number | null; compute: number | null;
};

type Size = { width: number; height: number };
type Box = Size & { x: number; y: number };
/** What the events of an op and a shape did on a backend. */
type ShapeWork = { op: number; shape: number; backend: number; count: number; total: number; moved: number; flops: number };
type Gap = Span & { backend: number; before: number; after: number };
/** The most that a backend reaches, in GB/s and GFLOP/s. */
type Roof = { bandwidth: number; compute: number };
type Peaks = { [backend: number]: Partial<Roof> };
/** By what events are put into groups. */
type Level = "op" | "backend" | "shape" | "layer" | "phase";
type Path = { level: Level; key: number }[];
type Hovered = { x: number; y: number; width: number; row?: PlacedRow; place: number; event: number };

/** What an element is made with: attributes, and what to do when something happens to it. */
type Attributes = {
  class?: string; id?: string; role?: string; title?: string; tabindex?: number; open?: boolean; scope?: "col";
  type?: string; value?: string; placeholder?: string; inputmode?: string; min?: number; step?: string;
  [name: `aria-${string}`]: string | number;
  onclick?: (event: MouseEvent) => void;
  onkeydown?: (event: KeyboardEvent) => void;
  oninput?: () => void;
  onchange?: () => void;
};

/** One of the tabs; what has an `update` is filled when it is opened, and when what it depends on changes. */
type Panel = { panel: HTMLElement; update?: () => void; dependsOn?: (keyof State)[] };

/** What the page shows. */
type State = {
  view: Span;
  range: Span | null;
  /** The idle time that was clicked. */
  gap: Gap | null;
  /** An event, or -1. */
  selected: number;
  /** The piece of a device's work for the selected event that was clicked, or -1. */
  work: number;
  hovered: Hovered | null;
  query: string;
  /** The row of the statistics that was clicked. */
  highlight: { path: Path; name: string } | null;
  /** Ops that are switched off in the legend. */
  hidden: Set<number>;
  /** Groups and rows, by their keys. */
  collapsed: Set<string>;
  pinned: Set<string>;
  colourBy: string;
  /** In GB/s and GFLOP/s, as people gave them. */
  peaks: Peaks;
  groupBy: string;
  scroll: number;
};
