// What a server says when it no longer has what a page missed.
import { plural } from './format';

/** The sentence for such a notice; undefined for any other log message. */
export function gapText(logger: string | undefined, data: unknown): string | undefined {
  if (logger !== 'resumability' || typeof data !== 'object' || data === null) return undefined;
  const { missed, restarted } = data as { missed?: unknown; restarted?: unknown };
  if (restarted === true) return 'The server’s log began anew; what was missed is not known';
  if (typeof missed !== 'number') return undefined;
  return `Of what was missed, ${plural(missed, 'message')} ${missed === 1 ? 'is' : 'are'} no longer kept by the server`;
}
