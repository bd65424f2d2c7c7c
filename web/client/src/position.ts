import { listOf, matching, object, optional, text, type Shaped } from './shapes.js';

/** An event's id, as a header can carry it. */
export const cursor = matching(/^[\x20-\x7e\xa0-\xff]{1,8192}$/);
export const handled = listOf(text);

/** A position in a stream, as it is stored. */
export const storedPosition = object({
  /** Everything up to this event is handled. */
  cursor: optional(cursor),
  /** Events after it that are handled too: they came while a question before them was open. */
  handled: optional(handled),
});
export type StoredPosition = Shaped<typeof storedPosition>;

/**
 * Where a stream is. A connection that breaks is followed by one that reads on after the last event *received*; a page
 * that is reloaded reads on after the last event before the first that is not yet *handled*. The two differ while a
 * question of the server waits for its answer.
 */
export class Position {
  #received: string | undefined;
  #cursor: string | undefined;
  #after: { id: string; isDone: boolean }[] = [];
  #handledBefore: Set<string>;

  constructor(stored: StoredPosition = {}) {
    this.#cursor = stored.cursor;
    this.#received = stored.cursor;
    this.#handledBefore = new Set(stored.handled);
  }

  get received(): string | undefined {
    return this.#received;
  }

  /** Back to what is stored, as a new page begins: who was asked a question is no longer there to answer it. */
  rewind(): void {
    const { cursor, handled } = this.stored();
    this.#received = cursor;
    this.#handledBefore = new Set(handled);
    this.#after = [];
  }

  /** The server does not know this position: the stream is read from wherever it begins. */
  forget(): void {
    this.#received = undefined;
    this.#cursor = undefined;
    this.#after = [];
    this.#handledBefore = new Set();
  }

  /** An event is there. False: an earlier page load has handled it. */
  arrive(id: string): boolean {
    this.#received = id;
    const isNew = !this.#handledBefore.delete(id);
    this.#after.push({ id, isDone: !isNew });
    if (!isNew) this.#advance();
    return isNew;
  }

  done(id: string): void {
    const event = this.#after.find(each => each.id === id);
    if (event) event.isDone = true;
    this.#advance();
  }

  stored(): StoredPosition {
    const handled = this.#after.filter(each => each.isDone).map(each => each.id);
    for (const id of this.#handledBefore) handled.push(id);
    return { cursor: this.#cursor, handled: handled.length > 0 ? handled : undefined };
  }

  #advance(): void {
    let count = 0;
    while (this.#after[count]?.isDone) ++count;
    if (count === 0) return;
    this.#cursor = this.#after[count - 1]!.id;
    this.#after.splice(0, count);
  }
}
