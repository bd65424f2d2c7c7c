import { soon } from './turn.js';

/**
 * Saves at once; then once for all that comes in the same turn. A page that ends before that has neither those events
 * nor their ids in its storage, and gets them again.
 */
export class Saves {
  readonly #waiting = new Set<{ save(): void }>();
  #isHolding = false;

  save(what: { save(): void }): void {
    if (this.#isHolding) {
      this.#waiting.add(what);
      return;
    }
    this.#isHolding = true;
    soon(() => this.flush());
    what.save();
  }

  flush(): void {
    this.#isHolding = false;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const each of waiting) each.save();
  }
}
