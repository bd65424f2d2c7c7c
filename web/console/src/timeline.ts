// What crossed the wire: kept in memory, the newest of it also across a reload.
import type { BelayClient, WireEvent } from 'belay-client';
import { anything, either, flag, listOf, number, object, oneOf, optional, record, text, time } from 'belay-client/shapes';
import { perFrame } from 'belay-react';
import { oneLine } from './format';
import { gapText } from './gap';
import { drop, load, reloads, save } from './storage';

export interface Entry extends Omit<WireEvent, 'message'> {
  readonly key: number;
  readonly summary: string;
  /** Missing if it was too large to keep across a reload. */
  readonly message?: unknown;
}

const entriesShape = listOf(
  object({
    at: time,
    kind: oneOf('sent', 'received', 'opened', 'ended', 'reloaded'),
    stream: optional(text),
    eventId: optional(text),
    replayed: optional(flag),
    detail: optional(text),
    summary: text,
    message: anything,
  }),
);
const messageShape = object({ id: optional(either(text, number)), method: optional(text), params: optional(record) });

const MAX_ENTRIES = 5000;
const MAX_STORED = 300;
const MAX_STORED_CHARS = 64 * 1024;
/** Larger messages are kept as their summary. */
const MAX_STORED_MESSAGE = 400;
const SAVE_DELAY = 1000;

export class Timeline {
  #entries: Entry[] = [];
  #snapshot: readonly Entry[] = [];
  #dropped = 0;
  #nextKey = 0;
  /** The key of the first entry that may be stored; Infinity until the page sends something again. */
  #storedFrom = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The methods of requests that are not answered yet, by who sent them and their id. */
  readonly #asked = new Map<string, string>();
  readonly #listeners = new Set<() => void>();
  readonly #changed = perFrame(() => {
    this.#snapshot = this.#entries.slice();
    for (const listener of this.#listeners) listener();
  });

  constructor() {
    for (const { at, kind, stream, eventId, replayed, detail, summary, message } of load('timeline', entriesShape) ?? []) {
      this.#push({ at, kind, stream, eventId, replayed, detail, summary, message });
      if (messageShape(message) && message.method !== undefined) this.#ask(kind, message.id, message.method); // Answers may still come.
    }
    const reloadedAt = reloads.at(-1);
    if (reloadedAt !== undefined && this.#entries.length > 0) {
      this.#push({ at: reloadedAt, kind: 'reloaded', summary: 'Page reloaded' });
    }
    this.#snapshot = this.#entries.slice();
  }

  /** Oldest first; the same array until the next frame with something new. */
  readonly entries = (): readonly Entry[] => this.#snapshot;

  /** How many of the oldest are no longer kept. */
  get dropped(): number {
    return this.#dropped;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Follows a client until the returned function is called. */
  follow(client: BelayClient): () => void {
    const stop = client.onwire(event => {
      // The seam of a reload is here already, at the time at which the page was loaded.
      if (event.kind === 'reloaded') return;
      // Streams that end after their session was left are still its own.
      if (event.kind === 'sent') this.#storedFrom = Math.min(this.#storedFrom, this.#nextKey);
      this.#push({ ...event, summary: this.#summaryOf(event) });
      this.#changed.tell();
      this.#timer ??= setTimeout(() => this.#save(), SAVE_DELAY);
    });
    const onHide = () => this.#save();
    window.addEventListener('pagehide', onHide);
    return () => {
      stop();
      window.removeEventListener('pagehide', onHide);
    };
  }

  clear(): void {
    this.#dropped += this.#entries.length;
    this.#entries = [];
    this.#changed.tell();
    this.#save();
  }

  /** What came so far stays on the page and leaves the storage for good. */
  forgetStored(): void {
    this.#storedFrom = Infinity;
    this.#save();
  }

  #push(entry: Omit<Entry, 'key'>): void {
    this.#entries.push({ key: this.#nextKey++, ...entry });
    // In steps, since dropping the first of an array moves all others.
    const excess = this.#entries.length - MAX_ENTRIES;
    if (excess >= MAX_ENTRIES / 10) {
      this.#entries.splice(0, excess);
      this.#dropped += excess;
    }
  }

  #summaryOf({ kind, message, detail }: WireEvent): string {
    if (!message) return `stream ${kind}${detail === undefined ? '' : `, ${detail}`}`;
    const told = message as Message;
    if (told.method !== undefined) {
      this.#ask(kind, told.id, told.method);
      return summaryOf(told, undefined).slice(0, MAX_SUMMARY);
    }
    const question = `${kind === 'sent' ? 'received' : 'sent'} ${told.id}`;
    const answers = this.#asked.get(question);
    this.#asked.delete(question);
    return summaryOf(told, answers).slice(0, MAX_SUMMARY);
  }

  #ask(kind: WireEvent['kind'], id: string | number | undefined, method: string): void {
    if (id !== undefined) this.#asked.set(`${kind === 'sent' ? 'sent' : 'received'} ${id}`, method);
  }

  #save(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const kept: Entry[] = [];
    let chars = 0;
    for (let index = this.#entries.length - 1; index >= 0 && kept.length < MAX_STORED; index -= 1) {
      const { message, ...entry } = this.#entries[index]!;
      if (entry.key < this.#storedFrom) break;
      const text = message === undefined ? '' : JSON.stringify(message);
      const compact: Entry = text.length > MAX_STORED_MESSAGE ? entry : { ...entry, message };
      chars += JSON.stringify(compact).length + 1;
      if (chars > MAX_STORED_CHARS) break;
      kept.push(compact);
    }
    if (kept.length > 0) save('timeline', kept.reverse());
    else drop('timeline');
  }
}

interface Message {
  id?: string | number;
  method?: string;
  params?: { name?: string; uri?: string; progress?: number; total?: number; level?: string; logger?: string; data?: unknown };
  error?: { code: number; message: string };
}

const MAX_SUMMARY = 120;

/** A message in a few words; for an answer, with the method that it answers. */
export function summaryOf({ method, params, error }: Message, answers: string | undefined): string {
  if (error) return `error ${error.code}: ${error.message}`;
  if (method === undefined) return answers === undefined ? 'result' : `result of ${answers}`;
  const short = method.replace(/^notifications\//, '');
  if (params?.progress !== undefined) {
    return `${short} ${params.progress}${params.total === undefined ? '' : `/${params.total}`}`;
  }
  if (params?.level !== undefined && params.data !== undefined) {
    return `${params.level} ${gapText(params.logger, params.data) ?? oneLine(params.data)}`;
  }
  const about = params?.name ?? params?.uri;
  return about ? `${short} ${about}` : short;
}
