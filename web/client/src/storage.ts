import { decode, type Shape } from './shapes.js';
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

/**
 * A part of a storage area: the keys with one prefix. Values are JSON, or text. Whatever is read must have its shape;
 * what has not is somebody else's, or of another version: it is dropped, which the browser's console is told.
 */
export class Shelf {
  #isClosed = false;

  constructor(
    readonly area: StorageArea,
    readonly prefix: string,
  ) {}

  text(key: string, shape: Shape<string>): string | undefined {
    const stored = this.#read(key);
    if (stored === undefined || shape(stored)) return stored;
    this.#drop(key);
    return undefined;
  }
  json<T>(key: string, shape: Shape<T>): T | undefined {
    const stored = this.#read(key);
    if (stored === undefined) return undefined;
    const value = decode(stored, shape);
    if (value === undefined) this.#drop(key);
    return value;
  }
  /** As it is, to be put back. */
  raw(key: string): string | undefined {
    return this.#read(key);
  }
  /** What is put on it from now on is kept nowhere: it is somebody else's. */
  close(): void {
    this.#isClosed = true;
  }
  /** False: there is no room for it. */
  put(key: string, value: string | undefined): boolean {
    if (this.#isClosed) return true;
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

  #read(key: string): string | undefined {
    return this.area.getItem(this.prefix + key) ?? undefined;
  }
  #drop(key: string): void {
    console.warn(`Dropped what was stored as ${this.prefix}${key}: it is nothing that this page has stored there.`);
    this.put(key, undefined);
  }
}
