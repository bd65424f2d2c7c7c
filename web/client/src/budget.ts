// The room that calls take in the storage. A browser gives an origin some five million characters for all that its pages
// store; calls have a limit below that. The oldest that have ended make room for newer ones, and nothing has to go for
// what would not fit anyway.
import type { Shape } from './shapes.js';
import type { Shelf } from './storage.js';

export class Budget {
  /** The sizes of what is stored, by call and key. */
  readonly #sizes = new Map<string, Map<string, number>>();
  #used = 0;

  constructor(
    readonly shelf: Shelf,
    /** In characters, names included. */
    private readonly limit: number,
    /** The calls that may go, first those that go first. */
    private readonly expendable: () => readonly string[],
    /** Nothing of that call is stored any more. */
    private readonly evicted: (call: string) => void,
  ) {}

  has(call: string): boolean {
    return this.#sizes.has(call);
  }

  /** Reads a part of a call that an earlier page load has written. */
  read<T>(call: string, key: string, shape: Shape<T>): T | undefined {
    const value = this.shelf.json(key, shape);
    if (value !== undefined) this.#note(call, key, key.length + this.shelf.raw(key)!.length);
    return value;
  }

  /** Writes a part of a call. False: it does not fit, and all is as it was. */
  put(call: string, key: string, value: string): boolean {
    const size = key.length + value.length;
    const excess = (): number => this.#used - (this.#sizes.get(call)?.get(key) ?? 0) + size - this.limit;
    if (!this.#write(key, value, call, excess)) return false;
    this.#note(call, key, size);
    return true;
  }

  /** Writes what the session cannot do without. It has no limit of its own. */
  putEssential(key: string, value: string | undefined): boolean {
    return this.#write(key, value, undefined, () => 0);
  }

  remove(call: string, key: string): void {
    this.shelf.put(key, undefined);
    this.#note(call, key, 0);
  }

  erase(call: string): void {
    for (const key of this.#sizes.get(call)?.keys() ?? []) this.shelf.put(key, undefined);
    this.#used -= this.#size(call);
    this.#sizes.delete(call);
  }

  /** Removes what is stored under names that begin so, unless with the name of one of these calls behind it. */
  sweep(prefix: string, calls: readonly string[]): void {
    const isOf = (key: string): boolean => calls.some(call => key === prefix + call || key.startsWith(`${prefix}${call}.`));
    for (const key of this.shelf.keys()) if (key.startsWith(prefix) && !isOf(key)) this.shelf.put(key, undefined);
  }

  #write(key: string, value: string | undefined, call: string | undefined, excess: () => number): boolean {
    if (excess() <= 0 && this.shelf.put(key, value)) return true;
    const others = this.expendable().filter(each => each !== call && this.has(each));
    if (excess() > others.reduce((sum, each) => sum + this.#size(each), 0)) return false;
    const gone: { call: string; sizes: Map<string, number>; values: Map<string, string> }[] = [];
    do {
      const next = others.shift();
      if (next === undefined) {
        // What was there has fit before.
        for (const each of gone.reverse()) this.#putBack(each.call, each.sizes, each.values);
        return false;
      }
      const sizes = this.#sizes.get(next)!;
      gone.push({ call: next, sizes, values: new Map([...sizes.keys()].map(each => [each, this.shelf.raw(each) ?? ''])) });
      this.erase(next);
    } while (excess() > 0 || !this.shelf.put(key, value));
    for (const each of gone) this.evicted(each.call);
    return true;
  }

  #size(call: string): number {
    return [...(this.#sizes.get(call)?.values() ?? [])].reduce((sum, each) => sum + each, 0);
  }

  #putBack(call: string, sizes: Map<string, number>, values: Map<string, string>): void {
    for (const [key, size] of sizes) if (this.shelf.put(key, values.get(key))) this.#note(call, key, size);
    if (!this.has(call)) this.evicted(call);
  }

  #note(call: string, key: string, size: number): void {
    const sizes = this.#sizes.get(call) ?? new Map<string, number>();
    this.#used += size - (sizes.get(key) ?? 0);
    if (size > 0) sizes.set(key, size);
    else sizes.delete(key);
    if (sizes.size > 0) this.#sizes.set(call, sizes);
    else this.#sizes.delete(call);
  }
}
