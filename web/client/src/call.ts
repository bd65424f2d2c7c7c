import { isCallToolResult, type CallToolResult, type JSONRPCResponse } from '@modelcontextprotocol/client';
import type { Budget } from './budget.js';
import { Position, storedPosition, type StoredPosition } from './position.js';
import {
  anything,
  count,
  flag,
  listOf,
  number,
  object,
  oneOf,
  optional,
  record,
  text,
  time,
  when,
  type Shape,
  type Shaped,
} from './shapes.js';
import {
  CallError,
  type Call,
  type CallKept,
  type CallOptions,
  type CallProgress,
  type CallState,
  type LogLine,
} from './types.js';

/** JSON-RPC's code for a call that was stopped on request, as Belay sends it. */
const CANCELLED = -32800;
/** Log lines per storage key: the last ones are written with the call itself, full pages once. */
const PAGE = 32;

/** More would be no page of ours. */
const MAX_PAGES = 10_000;
/** How much of an error's message is kept of a call that is too large to keep whole. */
const SHORT = 500;

export interface CallLimits {
  readonly resultBytes: number;
  readonly logLines: number;
  readonly storedLogLines: number;
}

const logLine = object({
  at: time,
  level: oneOf('debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'),
  logger: optional(text),
  data: anything,
  recovered: optional(flag),
}) satisfies Shape<LogLine>;

const storedCall = when(
  object({
    tool: text,
    /** With `isLean`, neither these nor the log nor an error's data are stored: there was no room for them. */
    arguments: optional(record),
    isLean: optional(flag),
    meta: optional(record),
    startedAt: time,
    endedAt: optional(time),
    state: oneOf('running', 'done', 'failed', 'cancelled', 'lost'),
    position: optional(storedPosition),
    progress: optional(object({ progress: number, total: optional(number), message: optional(text) })),
    /** Pages of log lines before `lines`: from the first that is kept up to the number of full ones. */
    pages: optional(when(listOf(count), ([from, to, ...more]) => more.length === 0 && to! >= from! && to! - from! < MAX_PAGES)),
    lines: optional(listOf(logLine)),
    dropped: optional(count),
    /** The size of the result, which has a key of its own, or none if it was too large. */
    resultBytes: optional(count),
    error: optional(
      object({
        state: oneOf('failed', 'cancelled', 'lost'),
        message: text,
        code: optional(number),
        data: anything,
      }),
    ),
  }),
  ({ state, endedAt, error }) =>
    (endedAt === undefined) === (state === 'running') && error?.state === (state === 'running' || state === 'done' ? undefined : state),
);
type StoredCall = Shaped<typeof storedCall>;

const result: Shape<CallToolResult> = (value): value is CallToolResult => isCallToolResult(value) && anything(value);

/** A call and its place in the storage: whatever happens to it is written before the next event is looked at. */
export class TrackedCall implements Call {
  readonly position: Position;
  readonly result: Promise<CallToolResult>;
  readonly #listeners = new Set<() => void>();
  #log: LogLine[] = [];
  #options: CallOptions;
  #state: CallState = 'running';
  #progress: CallProgress | undefined;
  #value: CallToolResult | undefined;
  #resultBytes: number | undefined;
  #error: CallError | undefined;
  #endedAt: number | undefined;
  #version = 0;
  #isErased = false;
  #dropped = 0;
  /** Lines since the last full page. */
  #page: LogLine[] = [];
  #pages: [number, number] = [0, 0];
  #kept: CallKept = 'whole';
  #isResultKept = true;
  #isLogKept = true;
  #isEvicted = false;
  #isTooLarge = false;
  #hasArguments = true;
  readonly #gonePages: number[] = [];
  #resolve!: (value: CallToolResult) => void;
  #reject!: (error: CallError) => void;
  oncancel: ((call: TrackedCall, reason: string | undefined) => void) | undefined;

  private constructor(
    readonly id: string,
    readonly tool: string,
    readonly args: Record<string, unknown>,
    readonly meta: Record<string, unknown> | undefined,
    readonly startedAt: number,
    readonly recovered: boolean,
    stored: StoredPosition | undefined,
    private readonly budget: Budget,
    private readonly limits: CallLimits,
    options: CallOptions,
  ) {
    this.position = new Position(stored);
    this.#options = options;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.result.catch(() => {}); // who does not ask for it is not told of it as unhandled
  }

  /** Not stored yet: `save` does that. */
  static begin(
    id: string,
    tool: string,
    args: Record<string, unknown>,
    options: CallOptions,
    budget: Budget,
    limits: CallLimits,
  ): TrackedCall {
    const meta = options.meta && { ...options.meta };
    return new TrackedCall(id, tool, args, meta, Date.now(), false, undefined, budget, limits, options);
  }

  /** Undefined: nothing is stored under that id. */
  static load(id: string, budget: Budget, limits: CallLimits): TrackedCall | undefined {
    const stored = budget.read(id, key(id), storedCall);
    if (!stored) return undefined;
    const { tool, meta, startedAt, isLean = false } = stored;
    const call = new TrackedCall(id, tool, stored.arguments ?? {}, meta, startedAt, true, stored.position, budget, limits, {});
    call.#hasArguments = !isLean;
    call.#kept = isLean ? 'partly' : 'whole';
    call.#state = stored.state;
    call.#endedAt = stored.endedAt;
    call.#progress = stored.progress;
    call.#dropped = stored.dropped ?? 0;
    call.#resultBytes = stored.resultBytes;
    call.#pages = [stored.pages?.[0] ?? 0, stored.pages?.[1] ?? 0];
    for (let page = call.#pages[0]; page < call.#pages[1]; ++page) {
      const lines = budget.read(id, pageKey(id, page), listOf(logLine));
      if (lines) call.#log.push(...lines);
      else call.#dropped += PAGE;
    }
    call.#page = stored.lines ?? [];
    call.#log.push(...call.#page);
    if (stored.error) {
      const { state, message, code, data } = stored.error;
      call.#error = new CallError(state, message, code, data);
      call.#reject(call.#error);
    } else if (stored.state === 'done') {
      call.#value = budget.read(id, resultKey(id), result);
      if (call.#value) {
        call.#resolve(call.#value);
      } else {
        call.#kept = 'partly';
        call.#reject(new CallError('lost', 'The result was too large to keep across the reload. Call the tool again.'));
      }
    }
    return call;
  }

  get arguments(): Readonly<Record<string, unknown>> {
    return this.args;
  }
  get state(): CallState {
    return this.#state;
  }
  get progress(): CallProgress | undefined {
    return this.#progress;
  }
  get log(): readonly LogLine[] {
    return this.#log;
  }
  get dropped(): number {
    return this.#dropped;
  }
  get value(): CallToolResult | undefined {
    return this.#value;
  }
  get resultBytes(): number | undefined {
    return this.#resultBytes;
  }
  get error(): CallError | undefined {
    return this.#error;
  }
  get endedAt(): number | undefined {
    return this.#endedAt;
  }
  get kept(): CallKept {
    return this.#kept;
  }
  get hasArguments(): boolean {
    return this.#hasArguments;
  }
  get version(): number {
    return this.#version;
  }
  get isRunning(): boolean {
    return this.#state === 'running';
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  cancel(reason?: string): void {
    if (this.isRunning) this.oncancel?.(this, reason);
  }

  // --- what happens to it

  progressed(progress: CallProgress): void {
    this.#progress = progress;
    this.#changed();
    guarded(() => this.#options.onprogress?.(progress));
  }

  logged(line: LogLine): void {
    this.#log.push(line);
    if (this.#log.length > this.limits.logLines) {
      this.#log.shift();
      ++this.#dropped;
    }
    this.#page.push(line);
    if (this.#page.length >= PAGE) this.#turnPage();
    this.#changed();
    guarded(() => this.#options.onlog?.(line));
  }

  answered(response: JSONRPCResponse): void {
    if (!this.isRunning) return;
    if ('error' in response) {
      const { code, message, data } = response.error;
      this.fail(new CallError(code === CANCELLED ? 'cancelled' : 'failed', message, code, data));
      return;
    }
    if (!isCallToolResult(response.result)) {
      this.fail(new CallError('failed', 'The server sent a result that is none of a tool call.', undefined, response.result));
      return;
    }
    this.#state = 'done';
    this.#value = response.result;
    const json = JSON.stringify(response.result);
    this.#resultBytes = json.length;
    this.#isResultKept = json.length <= this.limits.resultBytes && this.budget.put(this.id, resultKey(this.id), json);
    this.#end();
    this.#resolve(this.#value);
  }

  fail(error: CallError): void {
    if (!this.isRunning) return;
    this.#state = error.state;
    this.#error = error;
    this.#end();
    this.#reject(error);
  }

  #end(): void {
    this.#endedAt = Date.now();
    this.save();
    this.#changed();
  }

  #changed(): void {
    ++this.#version;
    for (const listener of [...this.#listeners]) guarded(listener);
  }

  // --- storage

  /** One write holds the position and what was handled up to it, so that none is ever ahead of the other. */
  save(): void {
    if (this.#isErased || this.#isEvicted) return;
    const stored: StoredCall = {
      tool: this.tool,
      arguments: this.#hasArguments ? this.args : undefined,
      isLean: this.#hasArguments ? undefined : true,
      meta: this.meta,
      startedAt: this.startedAt,
      endedAt: this.#endedAt,
      state: this.#state,
      position: this.isRunning ? this.position.stored() : undefined,
      progress: this.#progress,
      pages: this.#pages[1] > 0 ? this.#pages : undefined,
      lines: this.#page.length > 0 ? this.#page : undefined,
      dropped: this.#storedDropped(),
      resultBytes: this.#resultBytes,
      error: this.#error && {
        state: this.#error.state,
        message: this.#error.message,
        code: this.#error.code,
        data: this.#error.data,
      },
    };
    // A call that once was too large is tried whole again when it has ended, not at each of its events.
    const isWhole = !(this.isRunning && this.#isTooLarge) && this.budget.put(this.id, key(this.id), JSON.stringify(stored));
    this.#isTooLarge = !isWhole;
    // What is there from before stays if not even that can be written: a page that is reloaded gets the rest again.
    if (!isWhole && this.budget.put(this.id, key(this.id), JSON.stringify(this.#lean(stored)))) this.#dropPages();
    // Only now does nothing name them any more.
    for (const page of this.#gonePages.splice(0)) this.budget.remove(this.id, pageKey(this.id, page));
    if (!this.budget.has(this.id)) this.#keep('not');
    else this.#keep(isWhole && this.#hasArguments && this.#isResultKept && this.#isLogKept ? 'whole' : 'partly');
  }

  /** Nothing of it stays in the storage. */
  erase(): void {
    this.#isErased = true;
    this.budget.erase(this.id);
  }

  /** It had to make room for others. */
  evicted(): void {
    this.#isEvicted = true;
    this.#keep('not');
  }

  #keep(kept: CallKept): void {
    if (kept === this.#kept) return;
    this.#kept = kept;
    this.#changed();
  }

  /** What is needed to go on with it, and to say how it ended. */
  #lean(stored: StoredCall): StoredCall {
    const { tool, startedAt, endedAt, state, position, progress, resultBytes, error } = stored;
    return {
      tool,
      isLean: true,
      startedAt,
      endedAt,
      state,
      position,
      progress: progress && { progress: progress.progress, total: progress.total },
      dropped: this.#dropped + this.#log.length || undefined,
      resultBytes,
      error: error && { state: error.state, message: error.message.slice(0, SHORT), code: error.code, data: undefined },
    };
  }

  #turnPage(): void {
    const isKept = this.budget.put(this.id, pageKey(this.id, this.#pages[1]), JSON.stringify(this.#page));
    ++this.#pages[1];
    this.#page = [];
    if (!isKept) {
      this.#isLogKept = false;
      this.#dropPages();
    }
    while ((this.#pages[1] - this.#pages[0]) * PAGE > this.limits.storedLogLines) {
      this.#gonePages.push(this.#pages[0]);
      ++this.#pages[0];
    }
  }

  #dropPages(): void {
    for (; this.#pages[0] < this.#pages[1]; ++this.#pages[0]) this.#gonePages.push(this.#pages[0]);
  }

  #storedDropped(): number | undefined {
    const kept = (this.#pages[1] - this.#pages[0]) * PAGE + this.#page.length;
    const dropped = this.#dropped + this.#log.length - kept;
    return dropped > 0 ? dropped : undefined;
  }
}

function key(id: string): string {
  return `call.${id}`;
}
function pageKey(id: string, page: number): string {
  return `call.${id}.log.${page}`;
}
function resultKey(id: string): string {
  return `call.${id}.result`;
}

/** A listener that throws is its own trouble, not the stream's. */
export function guarded(work: () => void): void {
  try {
    work();
  } catch (error) {
    setTimeout(() => {
      throw error;
    }, 0);
  }
}
