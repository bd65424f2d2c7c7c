// @vitest-environment jsdom
import { expect, test, vi } from 'vitest';
import { Ownership } from '../src/ownership.js';

test('what another page says is only heard if it is one of the words that pages have for each other', async () => {
  const lost = vi.fn();
  const mine = new Ownership('session', lost);
  expect(await mine.acquire()).toBe(true);
  const others = new BroadcastChannel('belay-client');
  const replies: unknown[] = [];
  others.onmessage = event => replies.push(event.data);
  for (const odd of [
    null, undefined, 5, 'seize', [], ['seize', 'session'], {}, { name: 'session' }, { name: 'session', type: 5 },
    { name: 'session', type: 'toString' }, { name: 'session', type: ['seize'] }, { name: { session: 1 }, type: 'seize' },
    { name: 'another', type: 'seize' },
  ])
    others.postMessage(odd);
  others.postMessage({ name: 'session', type: 'who' });
  await vi.waitFor(() => expect(replies).toEqual([{ type: 'mine', name: 'session' }]), { timeout: 20_000 });
  expect(lost).not.toHaveBeenCalled();
  others.postMessage({ name: 'session', type: 'seize' });
  await vi.waitFor(() => expect(lost).toHaveBeenCalledOnce(), { timeout: 20_000 });
  others.close();
});
