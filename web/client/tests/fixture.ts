import { afterEach } from 'vitest';
import type { BelayClientOptions } from '../src/index.js';
import { expectedNotes } from '../../../tests/clients/lib/expect.mjs';
import { Server } from '../../../tests/clients/lib/server.mjs';
import { Page, Tab } from './page.js';

export const TOOL = 'utility-notifications';
const servers = new Set<Server>();
const pages = new Set<Page>();

afterEach(async () => {
  for (const page of pages) page.die();
  pages.clear();
  const stopped = [...servers].map(server => server.stop());
  servers.clear();
  await Promise.all(stopped);
});

export async function startServer(flags: string[] = []): Promise<Server> {
  const server = await Server.start(flags);
  servers.add(server);
  return server;
}
export async function stopServer(server: Server): Promise<void> {
  servers.delete(server);
  await server.stop();
}

export function openPage(server: { url: URL }, tab = new Tab(), options: BelayClientOptions = {}): Page {
  const page = new Page('http://server.test/mcp', tab, options);
  page.route = url => (url.host === 'server.test' ? new URL(url.pathname, server.url) : url);
  pages.add(page);
  return page;
}

/** U(d, i) of the acceptance scenarios, and every line it logs. */
export function utility(durationSeconds: number, intervalMs: number, messagePrefix = 'u') {
  const args = { durationSeconds, intervalMs, messagePrefix };
  return { args, lines: expectedNotes(args) as string[] };
}

/** Settles when the server has said that many more things than when it was asked. */
export async function saidBy(server: Server, count: number): Promise<void> {
  const before = (await server.metrics())['belay_events_appended_total']!;
  await server.until(metrics => metrics['belay_events_appended_total']! >= before + count);
}
