// What the server asks, answered by a page that may not be the one that was asked first.
import { expect, test } from 'vitest';
import type { BelayClientOptions, QuestionContext } from '../src/index.js';
import { openPage, startServer, stopServer } from './fixture.js';
import { Tab, textOf, until } from './page.js';

type Answer<T> = (value: T) => void;

/** A handler that waits for the test. */
function asked<P, T>() {
  const questions: { params: P; context: QuestionContext; answer: Answer<T> }[] = [];
  const listeners = new Set<() => void>();
  const handler = (params: P, context: QuestionContext): Promise<T> =>
    new Promise(answer => {
      questions.push({ params, context, answer });
      for (const listener of listeners) listener();
    });
  return {
    handler,
    questions,
    subscribe: (listener: () => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

const sample = { role: 'assistant' as const, content: { type: 'text' as const, text: 'sampled' }, model: 'none' };

for (const [scenario, tool, args, option, answer, expected] of [
  ['AS-52: sampling', 'sampleLLM', { prompt: 'say something' }, 'sampling', sample, 'sampled'],
  ['AS-53: elicitation', 'elicitInputs', {}, 'elicitation', { action: 'decline' }, 'declin'],
] as const) {
  test(`${scenario} across a reload is asked once more, and answered by the new page`, async () => {
    const server = await startServer();
    const tab = new Tab();
    const old = asked<unknown, never>();
    const first = openPage(server, tab, { [option]: old.handler } as BelayClientOptions);
    await first.client.start();
    const begun = first.client.callTool(tool, args);
    await until(old, () => old.questions.length === 1);
    expect(old.questions[0]!.context.call).toBe(begun);
    first.die();

    const fresh = asked<unknown, never>();
    const second = openPage(server, tab, { [option]: fresh.handler } as BelayClientOptions);
    await second.client.start();
    const call = second.client.calls()[0]!;
    await until(fresh, () => fresh.questions.length === 1);
    expect(fresh.questions[0]!.context.call).toBe(call);
    expect(fresh.questions[0]!.params).toEqual(old.questions[0]!.params);
    fresh.questions[0]!.answer(answer as never);
    expect(textOf(await call.result)!.toLowerCase()).toContain(expected);
    expect(fresh.questions.length).toBe(1);
  });

  test(`${scenario} across a network cut is asked once`, async () => {
    const server = await startServer();
    const questions = asked<unknown, never>();
    const page = openPage(server, new Tab(), { [option]: questions.handler } as BelayClientOptions);
    await page.client.start();
    const call = page.client.callTool(tool, args);
    await until(questions, () => questions.questions.length === 1);
    page.isOffline = true;
    await until(page.client, () => page.client.status.state === 'reconnecting');
    questions.questions[0]!.answer(answer as never); // is delivered when there is a network
    page.isOffline = false;
    expect(textOf(await call.result)!.toLowerCase()).toContain(expected);
    expect(questions.questions.length).toBe(1);
  });
}

test('a question is asked again of a client that was closed and comes back', async () => {
  const server = await startServer();
  const questions = asked<unknown, never>();
  const page = openPage(server, new Tab(), { elicitation: questions.handler });
  await page.client.start();
  const call = page.client.callTool('elicitInputs', {});
  await until(questions, () => questions.questions.length === 1);
  await page.client.close();
  await page.client.reconnect();
  await until(questions, () => questions.questions.length === 2);
  questions.questions[1]!.answer({ action: 'decline' } as never);
  expect(textOf(await call.result)!.toLowerCase()).toContain('declin');
});

test('a cancelled call takes its question back', async () => {
  const server = await startServer();
  const questions = asked<unknown, never>();
  const page = openPage(server, new Tab(), { elicitation: questions.handler });
  await page.client.start();
  const call = page.client.callTool('elicitInputs', {});
  await until(questions, () => questions.questions.length === 1);
  const { signal } = questions.questions[0]!.context;
  call.cancel();
  await expect(call.result).rejects.toMatchObject({ state: 'cancelled' });
  if (!signal.aborted) await new Promise(resolve => signal.addEventListener('abort', resolve));
});

const uri = 'test://static/resource/1';

test('a subscription that waits for its question is gone on with after a reload', async () => {
  const server = await startServer();
  const tab = new Tab();
  const old = asked<unknown, never>();
  const first = openPage(server, tab, { sampling: old.handler as never });
  await first.client.start();
  first.client.client.subscribeResource({ uri }).catch(() => {});
  await until(old, () => old.questions.length === 1);
  expect(first.client.pending()).toMatchObject([{ method: 'resources/subscribe', params: { uri }, recovered: false }]);
  first.die();

  const fresh = asked<unknown, never>();
  const second = openPage(server, tab, { sampling: fresh.handler as never });
  const [pending] = second.client.pending();
  expect(pending, 'there before any connection').toMatchObject({ method: 'resources/subscribe', params: { uri }, recovered: true });
  await second.client.start();
  await until(fresh, () => fresh.questions.length === 1);
  expect(fresh.questions[0]!.params).toEqual(old.questions[0]!.params);
  expect(second.client.pending()).toEqual([pending]);
  fresh.questions[0]!.answer(sample as never);
  await expect(pending!.answer).resolves.toEqual({});
  expect(second.client.pending()).toEqual([]);
  const asks = [...first.requests, ...second.requests].filter(({ body }) => body?.includes('resources/subscribe'));
  expect(asks.length, 'it is asked for once').toBe(1);
  second.die();
  expect(openPage(server, tab).client.pending(), 'and it is over').toEqual([]);
});

test('a subscription that waits ends with its session', async () => {
  let server = await startServer();
  const questions = asked<unknown, never>();
  const page = openPage({ get url() { return server.url; } }, new Tab(), { sampling: questions.handler as never });
  await page.client.start();
  const subscribed = page.client.client.subscribeResource({ uri });
  await until(questions, () => questions.questions.length === 1);
  const [pending] = page.client.pending();
  page.isOffline = true;
  await stopServer(server);
  server = await startServer();
  page.isOffline = false;
  await expect(subscribed).rejects.toThrow();
  await expect(pending!.answer).rejects.toMatchObject({ message: expect.stringContaining('no longer knows the session') });
  expect(page.client.pending()).toEqual([]);
});

test('roots are told', async () => {
  const server = await startServer();
  const page = openPage(server, new Tab(), { roots: () => [{ uri: 'file:///home', name: 'home' }] });
  await page.client.start();
  expect(textOf(await page.client.callTool('listRoots').result)).toContain('file:///home');
});
