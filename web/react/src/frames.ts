/** The longest wait for a frame, in milliseconds: hidden pages get none. */
const MAX_WAIT = 100;

/** Wraps a listener so that it runs once per frame, however often it is told. `stop` drops what is due. */
export function perFrame(listener: () => void): { tell: () => void; stop: () => void } {
  let frame: number | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = () => {
    if (frame !== undefined) cancelAnimationFrame(frame);
    clearTimeout(timer);
    frame = timer = undefined;
  };
  const run = () => {
    stop();
    listener();
  };
  const tell = () => {
    if (timer !== undefined) return;
    timer = setTimeout(run, MAX_WAIT);
    if (typeof requestAnimationFrame === 'function') frame = requestAnimationFrame(run);
  };
  return { tell, stop };
}
