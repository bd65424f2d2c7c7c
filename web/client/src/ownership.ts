// Which page a session belongs to. A duplicated tab starts with a copy of the original's storage, session and all, and
// two pages that read one session's streams take them from each other; so a page holds a lock while it uses a session.

import { object, oneOf, text, type Shaped } from './shapes.js';

const message = object({ type: oneOf('who', 'mine', 'seize'), name: text });
type Message = Shaped<typeof message>;

/** How often to ask who has a lock that is not granted. */
const ASKING = 1000;
/** How long a page may take to give up a session that it is asked for. */
const LETTING_GO = 1000;
const STORAGE_DELAY = 50;
/** How long to wait for a word of another page where there are no locks to ask. */
const HEARSAY = 300;

export class Ownership {
  readonly #channel: BroadcastChannel | undefined;
  readonly #locks: LockManager | undefined;
  #release: (() => void) | undefined;
  #isMine = false;
  #isReleased = false;
  #onreply: (() => void) | undefined;

  constructor(
    readonly name: string,
    /** Another page has seized it. */
    private readonly onlost: () => void,
  ) {
    this.#locks = globalThis.navigator?.locks;
    // Node has broadcast channels too, between threads: there is no tab to talk to.
    if (typeof BroadcastChannel === 'undefined' || typeof document === 'undefined') return;
    this.#channel = new BroadcastChannel('belay-client');
    this.#channel.onmessage = (event: MessageEvent<unknown>) => this.#hear(event.data);
  }

  /** False: another page has it, or it was released meanwhile. */
  async acquire(): Promise<boolean> {
    if (!this.#channel && !this.#locks) return (this.#isMine = true);
    const waiting = new AbortController();
    // A page that uses the session says so. One that is being unloaded, as by a reload, says nothing and lets go of its
    // lock, on a busy machine after seconds; taking it for another tab would cost this page its calls.
    const asking = setInterval(() => this.#say('who'), ASKING);
    const answer = new Promise<boolean>(resolve => {
      this.#onreply = () => resolve(false);
      if (this.#locks) void this.#hold({ signal: waiting.signal }, () => resolve(true));
      else setTimeout(() => resolve(true), HEARSAY);
    });
    this.#say('who');
    const isMine = await answer;
    clearInterval(asking);
    this.#onreply = undefined;
    if (isMine) this.#isMine = true;
    else waiting.abort();
    return isMine;
  }

  /** Takes it from whoever has it, who gets a moment to let go of it. */
  async seize(): Promise<void> {
    this.#say('seize');
    if (this.#locks) {
      const patience = new AbortController();
      const timer = setTimeout(() => patience.abort(), LETTING_GO);
      const isGranted = new Promise<boolean>(resolve => {
        patience.signal.addEventListener('abort', () => resolve(false));
        void this.#hold({ signal: patience.signal }, () => resolve(true));
      });
      if (await isGranted) clearTimeout(timer);
      else if (!this.#isReleased) await new Promise<void>(resolve => void this.#hold({ steal: true }, resolve));
    }
    this.#isMine = !this.#isReleased;
    // What the other page has stored may be on its way from another process.
    await new Promise(resolve => setTimeout(resolve, STORAGE_DELAY));
  }

  release(): void {
    this.#isMine = false;
    this.#isReleased = true;
    this.#onreply?.();
    this.#release?.();
    this.#release = undefined;
    this.#channel?.close();
  }

  async #hold(options: LockOptions, granted: () => void): Promise<void> {
    try {
      await this.#locks!.request(`belay-client:${this.name}`, options, () => {
        granted();
        if (this.#isReleased) return Promise.resolve();
        return new Promise<void>(resolve => (this.#release = resolve));
      });
    } catch {
      // Stolen, or no longer wanted.
      if (this.#isMine) this.#lost();
    }
  }

  #lost(): void {
    this.#isMine = false;
    this.onlost(); // stores what is left to store before the other page reads it
    this.release();
  }

  #say(type: Message['type']): void {
    this.#channel?.postMessage({ type, name: this.name } satisfies Message);
  }

  #hear(said: unknown): void {
    if (!message(said) || said.name !== this.name) return;
    if (said.type === 'mine') this.#onreply?.();
    else if (!this.#isMine) return;
    else if (said.type === 'who') this.#say('mine');
    else this.#lost();
  }
}
