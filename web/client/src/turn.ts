/** Resolves in a turn of its own, after what the browser has to do first: paint, take input. */
export function nextTurn(): Promise<void> {
  return new Promise(soon);
}

/** Timers are held back in pages that nobody looks at; messages are not. */
export const soon: (work: () => void) => void =
  typeof document === 'undefined' || typeof MessageChannel === 'undefined' ? work => void setTimeout(work, 0) : viaChannel();

function viaChannel(): (work: () => void) => void {
  const { port1, port2 } = new MessageChannel();
  const queue: (() => void)[] = [];
  port1.onmessage = () => queue.shift()?.();
  return work => {
    queue.push(work);
    port2.postMessage(undefined);
  };
}
