/** 0.4 s, 12.3 s, 2:05, 1:02:05; with `exact` 12 ms for what took no tenth of a second. */
export function duration(ms: number, exact = false): string {
  if (exact && ms < 100) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.floor(seconds);
  const two = (number: number) => String(number).padStart(2, '0');
  const minutes = Math.floor(whole / 60);
  return minutes < 60
    ? `${minutes}:${two(whole % 60)}`
    : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(whole % 60)}`;
}

export function bytes(count: number): string {
  if (count < 1024) return `${count} B`;
  return count < 1024 * 1024 ? `${(count / 1024).toFixed(1)} KiB` : `${(count / 1024 / 1024).toFixed(1)} MiB`;
}

/** 14:02:05.123 */
export function clock(at: number): string {
  const time = new Date(at);
  const pad = (number: number, width: number) => String(number).padStart(width, '0');
  return `${pad(time.getHours(), 2)}:${pad(time.getMinutes(), 2)}:${pad(time.getSeconds(), 2)}.${pad(time.getMilliseconds(), 3)}`;
}

/** 02:05.123, for rows in which the hour is known. */
export function shortClock(at: number): string {
  return clock(at).slice(3);
}

export function plural(count: number, word: string): string {
  return `${count.toLocaleString('en')} ${word}${count === 1 ? '' : 's'}`;
}

/** A value on one line: text as it is, the rest as JSON. */
export function oneLine(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
}

/** A value by a name that may be anything, also that of something every object has. */
export function ownValue<T>(values: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(values, name) ? values[name] : undefined;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
