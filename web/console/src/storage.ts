// What the page itself keeps across a reload. Calls and sessions are kept by belay-client.
import { useCallback, useEffect, useState } from 'react';

const PREFIX = 'belay_console_';

export function load<T>(key: string): T | undefined {
  try {
    const text = sessionStorage.getItem(PREFIX + key);
    return text === null ? undefined : (JSON.parse(text) as T);
  } catch {
    return undefined;
  }
}

/** Does nothing where there is no storage, or no room in it. */
export function save(key: string, value: unknown): void {
  try {
    sessionStorage.setItem(PREFIX + key, JSON.stringify(value));
  } catch {
    // The page works without it.
  }
}

/** Removes what is stored under keys that begin so. */
export function drop(prefix: string): void {
  try {
    for (const key of Object.keys(sessionStorage)) {
      if (key.startsWith(PREFIX + prefix)) sessionStorage.removeItem(key);
    }
  } catch {
    // Nothing is stored where there is no storage.
  }
}

/** State that survives a reload. The key must stay the same for the life of the component. */
export function usePersisted<T>(key: string, initial: () => T): [T, (next: T) => void] {
  const [value, setValue] = useState<T>(() => load<T>(key) ?? initial());
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
  const loads = load<number[]>('loads') ?? [];
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
