/** A server that asks for a longer wait is asked after this one, in milliseconds. */
const LONGEST_TOLD = 10 * 60_000;

/** The wait that a server asked for; others that it told the same do not come back at the same moment. */
export function told(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.min(ms, LONGEST_TOLD) * (1 + Math.random() / 8);
}

/** Waits that grow, with jitter, so that the pages of a restarted server do not come back all at once. */
export class Backoff {
  constructor(
    readonly first: number,
    readonly longest: number,
  ) {}

  /** Of the attempt-th retry in a row, from 0. */
  delay(attempt: number): number {
    const full = Math.min(this.first * 2 ** Math.min(attempt, 20), this.longest);
    return full / 2 + (Math.random() * full) / 2;
  }
}

/** A wait that can be cut short. */
export class Alarm {
  #ring: (() => void) | undefined;

  async wait(ms: number): Promise<void> {
    await new Promise<void>(resolve => {
      const timer = setTimeout(resolve, ms);
      this.#ring = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#ring = undefined;
  }
  ring(): void {
    this.#ring?.();
  }
}
