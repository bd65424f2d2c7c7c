// What the page itself keeps across a reload. Calls and sessions are kept by belay-client.
import { listOf, time, type Shape } from 'belay-client/shapes';
import { browserStorage, Shelf } from 'belay-client/storage';
import { useCallback, useEffect, useState } from 'react';

const shelf = new Shelf(browserStorage('sessionStorage'), 'belay_console_');
/** Longer values are not kept: calls need the room more than what was typed does. In characters. */
const LONGEST = 256 * 1024;

/** Undefined also for what has another shape: it is dropped, and the browser's console is told. */
export function load<T>(key: string, shape: Shape<T>): T | undefined {
  return shelf.json(key, shape);
}

/** Where there is no room for it, nothing is kept; the page works without it. */
export function save(key: string, value: unknown): void {
  const json = JSON.stringify(value);
  if (json.length > LONGEST || !shelf.put(key, json)) shelf.put(key, undefined);
}

/** Removes what is stored under keys that begin so. */
export function drop(prefix: string): void {
  for (const key of shelf.keys()) if (key.startsWith(prefix)) shelf.put(key, undefined);
}

/** State that survives a reload. The key must stay the same for the life of the component. */
export function usePersisted<T>(key: string, shape: Shape<T>, initial: () => T): [T, (next: T) => void] {
  const [value, setValue] = useState<T>(() => load(key, shape) ?? initial());
  const set = useCallback(
    (next: T) => {
      setValue(next);
      save(key, next);
    },
    [key],
  );
  return [value, set];
}

/** The times at which this tab loaded the page again, in milliseconds since the epoch. */
export const reloads: readonly number[] = (() => {
  const loads = load('loads', listOf(time)) ?? [];
  const now = Math.floor(performance.timeOrigin);
  const all = loads.at(-1) === now ? loads : [...loads, now].slice(-50);
  save('loads', all);
  return all.slice(1);
})();

/** The time, anew every `interval` milliseconds while `running`. */
export function useNow(interval: number, running: boolean): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!running) return;
    const timer = setInterval(() => setNow(Date.now()), interval);
    return () => clearInterval(timer);
  }, [interval, running]);
  return now;
}
