import type { StorageArea } from './types.js';

/** For places without `sessionStorage`, and for pages that may not use it. */
export class MemoryStorage implements StorageArea {
  readonly #items = new Map<string, string>();
  get length(): number {
    return this.#items.size;
  }
  key(index: number): string | null {
    return [...this.#items.keys()][index] ?? null;
  }
  getItem(key: string): string | null {
    return this.#items.get(key) ?? null;
  }
  setItem(key: string, value: string): void {
    this.#items.set(key, value);
  }
  removeItem(key: string): void {
    this.#items.delete(key);
  }
}

/** The browser's own storage. Reading the property throws where cookies are blocked. */
export function browserStorage(name: 'sessionStorage' | 'localStorage'): StorageArea {
  try {
    const area = globalThis[name] as StorageArea | undefined;
    if (area) return area;
  } catch {
    // fall through
  }
  return new MemoryStorage();
}

/** A part of a storage area: the keys with one prefix. Values are JSON, or text. */
export class Shelf {
  constructor(
    readonly area: StorageArea,
    readonly prefix: string,
  ) {}

  text(key: string): string | undefined {
    return this.area.getItem(this.prefix + key) ?? undefined;
  }
  /** Undefined also for what cannot be read: somebody else's value is no reason to fail. */
  json<T>(key: string): T | undefined {
    const text = this.text(key);
    if (text === undefined) return undefined;
    try {
      return JSON.parse(text) as T;
    } catch {
      return undefined;
    }
  }
  /** False: there is no room for it. */
  put(key: string, value: string | undefined): boolean {
    try {
      if (value === undefined) this.area.removeItem(this.prefix + key);
      else this.area.setItem(this.prefix + key, value);
      return true;
    } catch {
      return false;
    }
  }
  putJson(key: string, value: unknown): boolean {
    return this.put(key, value === undefined ? undefined : JSON.stringify(value));
  }
  keys(): string[] {
    const found: string[] = [];
    for (let index = 0; index < this.area.length; ++index) {
      const key = this.area.key(index);
      if (key?.startsWith(this.prefix)) found.push(key.slice(this.prefix.length));
    }
    return found;
  }
}
