import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { perFrame } from '../src/frames.js';

const FRAME = 16;

describe('perFrame', () => {
  beforeEach(() => {
    vi.useFakeTimers();
    vi.stubGlobal('requestAnimationFrame', (work: () => void) => setTimeout(work, FRAME));
    vi.stubGlobal('cancelAnimationFrame', clearTimeout);
  });
  afterEach(() => {
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });

  it('tells once per frame, however often it is told', () => {
    const listener = vi.fn();
    const { tell } = perFrame(listener);
    for (let i = 0; i < 1000; i += 1) tell();
    expect(listener).not.toHaveBeenCalled();
    vi.advanceTimersByTime(FRAME);
    expect(listener).toHaveBeenCalledTimes(1);
    vi.runAllTimers();
    expect(listener).toHaveBeenCalledTimes(1);
    tell();
    vi.advanceTimersByTime(FRAME);
    expect(listener).toHaveBeenCalledTimes(2);
  });

  it('tells without frames too: hidden pages get none', () => {
    vi.stubGlobal('requestAnimationFrame', () => 1);
    const listener = vi.fn();
    perFrame(listener).tell();
    vi.runAllTimers();
    expect(listener).toHaveBeenCalledTimes(1);
  });

  it('hears what the listener itself changes', () => {
    let left = 3;
    const { tell } = perFrame(() => {
      left -= 1;
      if (left > 0) tell();
    });
    tell();
    vi.runAllTimers();
    expect(left).toBe(0);
  });

  it('drops what is due when it is stopped', () => {
    const listener = vi.fn();
    const { tell, stop } = perFrame(listener);
    tell();
    stop();
    vi.runAllTimers();
    expect(listener).not.toHaveBeenCalled();
  });
});
