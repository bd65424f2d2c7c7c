// A page load as the library sees it, without a browser: storage that outlives it, and a network that dies with it.
import { BelayClient, MemoryStorage, type BelayClientOptions, type Call, type StorageArea } from '../src/index.js';
import type { WireEvent } from '../src/index.js';

/** What a browser keeps for a tab. */
export class Tab {
  readonly storage = { tab: new MemoryStorage(), shared: new MemoryStorage() };
  /** `duplicate tab` */
  duplicate(): Tab {
    const copy = new Tab();
    for (const area of ['tab', 'shared'] as const) {
      const from = this.storage[area];
      for (let index = 0; index < from.length; ++index) copy.storage[area].setItem(from.key(index)!, from.getItem(from.key(index)!)!);
    }
    return copy;
  }
}

class MortalStorage implements StorageArea {
  constructor(
    readonly area: StorageArea,
    readonly isDead: () => boolean,
  ) {}
  get length(): number {
    return this.area.length;
  }
  key(index: number): string | null {
    return this.area.key(index);
  }
  getItem(key: string): string | null {
    return this.area.getItem(key);
  }
  setItem(key: string, value: string): void {
    if (!this.isDead()) this.area.setItem(key, value);
  }
  removeItem(key: string): void {
    if (!this.isDead()) this.area.removeItem(key);
  }
}

export class Page {
  readonly client: BelayClient;
  readonly wire: WireEvent[] = [];
  readonly states: string[] = [];
  readonly requests: { method: string; headers: Headers; body: string | undefined }[] = [];
  readonly #death = new AbortController();
  /** Where requests go, whatever address the client was given: a server that comes back has another port. */
  route: (url: URL) => URL = url => url;
  #isOffline = false;
  #connections = new Set<AbortController>();

  constructor(url: URL | string | undefined, tab: Tab, options: BelayClientOptions = {}) {
    const isDead = (): boolean => this.#death.signal.aborted;
    this.client = new BelayClient({
      serverUrl: url,
      storage: {
        tab: new MortalStorage(tab.storage.tab, isDead),
        shared: new MortalStorage(tab.storage.shared, isDead),
      },
      retryDelay: 50,
      maxRetryDelay: 200,
      ...options,
      fetch: (input, init) => this.#fetch(input, init),
    });
    this.client.onwire(event => this.wire.push(event));
    this.client.subscribe(() => {
      const { state } = this.client.status;
      if (this.states.at(-1) !== state) this.states.push(state);
    });
  }

  /** As a reload does it: no word to the server, nothing written any more. */
  die(): void {
    this.#death.abort(new TypeError('The page is gone.'));
    void this.client.close();
  }
  set isOffline(value: boolean) {
    this.#isOffline = value;
    if (value) for (const connection of this.#connections) connection.abort(new TypeError('Offline.'));
  }

  async #fetch(input: string | URL, init: RequestInit = {}): Promise<Response> {
    const connection = new AbortController();
    if (this.#isOffline) throw new TypeError('Offline.');
    this.#connections.add(connection);
    this.requests.push({
      method: init.method ?? 'GET',
      headers: new Headers(init.headers),
      body: init.body as string | undefined,
    });
    const signals = [connection.signal, this.#death.signal];
    if (init.signal) signals.push(init.signal);
    return fetch(this.route(new URL(input)), { ...init, signal: AbortSignal.any(signals) });
  }
}

/** Settles when the condition holds, told by the call or by the client. */
export function until(source: { subscribe(listener: () => void): () => void }, condition: () => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    const bound = setTimeout(() => {
      stop();
      reject(new Error(`waited in vain for ${condition}`));
    }, 20_000);
    const look = (): void => {
      if (!condition()) return;
      clearTimeout(bound);
      stop();
      resolve();
    };
    const stop = source.subscribe(look);
    look();
  });
}

export const lines = (call: Call): unknown[] => call.log.map(line => line.data);
export const textOf = (result: { content: unknown[] }): string | undefined =>
  (result.content[0] as { text?: string } | undefined)?.text;
