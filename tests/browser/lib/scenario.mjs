// One test body, with a server and a browser context of its own; one browser per file.
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { Server } from '../../clients/lib/server.mjs';
import { Tab } from './tab.mjs';

export const pictures = fileURLToPath(new URL('../../../build/screenshots/', import.meta.url));

/** Chromium as people have it, and its engine without windows, which takes little more than half of the processor. */
export const wholeBrowser = '/usr/bin/chromium';
const engine = '/usr/bin/chromium-headless-shell';

/** A host that is not this machine, for the browser. */
export const elsewhere = 'app.example';

/** What the browser itself says of a connection that a test has broken. */
export const broken = /^Failed to load resource: net::ERR_/;
export const refused = (status) =>
    new RegExp(`^Failed to load resource: the server responded with a status of ${status} `);

/** What the page says after a gap. */
export const recovered = (count) => `Recovered ${count} missed notification${count === 1 ? '' : 's'}`;

/**
 * A list of [name, options, body]. Options: flags of the server; context, options of the browser's; expected, patterns
 * of the complaints that the browser may write to its console.
 */
export function scenarios(title, list, executablePath = engine) {
    // Scenarios wait for timers of seconds; more at once would make them wait for the processor.
    describe(title, { concurrency: 4 }, () => {
        let browser;
        before(async () => {
            browser = await chromium.launch({
                executablePath,
                args: ['--no-sandbox', `--host-resolver-rules=MAP ${elsewhere} 127.0.0.1`],
            });
        });
        after(() => browser.close());
        for (const [name, options, body] of list)
            test(name, { timeout: 90_000 }, (t) => run(t, browser, options, body));
    });
}

async function run(t, browser, { flags, context: contextOptions, expected = [] }, body) {
    const server = await Server.start(flags);
    // Without a graphics processor, animations cost a core per page.
    const context = await browser.newContext(
        { viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', ...contextOptions });
    context.setDefaultTimeout(20_000);
    const world = new World(t, server, context);
    // The server is stopped and judged whether or not the body passes; the body's failure is the one reported.
    let failure;
    try {
        await world.watch();
        await body(world);
        assert.deepEqual(world.complaints.filter((text) => !expected.some((pattern) => pattern.test(text))), []);
        assert.deepEqual(world.strangers, [], 'no request leaves the origin');
    } catch (error) {
        failure = error;
        await world.report();
    }
    await context.close();
    await Promise.allSettled(world.closers.map((closer) => closer()));
    try {
        await world.server.stop();
    } catch (error) {
        failure ??= error;
        t.diagnostic(String(error));
    }
    if (failure)
        throw failure;
}

class World {
    tabs = [];
    closers = [];
    /** Errors in the browser's console, uncaught errors, violations of the page's policy. */
    complaints = [];
    /** Requests to anywhere else. */
    strangers = [];
    #origins = new Set();

    constructor(t, server, context) {
        this.t = t;
        this.server = server;
        this.context = context;
    }

    onClose = (closer) => this.closers.push(closer);

    async watch() {
        const { context } = this;
        context.on('console', (message) => {
            if (message.type() === 'error')
                this.complaints.push(message.text());
        });
        context.on('weberror', (error) => this.complaints.push(String(error.error())));
        context.on('request', (request) => this.#requested(request));
        await context.exposeBinding('tellTest', ({ page }, kind, text) => {
            if (kind === 'status')
                this.#tabOf(page)?.statuses.push(text);
            else
                this.complaints.push(text);
        });
        await context.addInitScript(() => {
            if (!location.protocol.startsWith('http'))
                return;
            window.storageAtStart = { ...sessionStorage };
            document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
                window.tellTest('violation', `the policy forbids ${blockedURI} (${violatedDirective})`));
            let last;
            const look = () => {
                const text = document.querySelector('[role=status]')?.textContent;
                if (text && text !== last)
                    window.tellTest('status', last = text);
            };
            new MutationObserver(look).observe(
                document, { subtree: true, childList: true, characterData: true });
        });
    }

    /** A new tab. `base` is where the page comes from: the server, or what stands before it. */
    tab = async ({ path = '/', base = this.server.url } = {}) => {
        const page = await this.context.newPage();
        return this.adopt(page, new URL(path, base));
    };

    adopt = (page, url) => {
        const tab = new Tab(page, url);
        this.tabs.push(tab);
        this.allow(url);
        return tab;
    };

    allow = ({ origin }) => this.#origins.add(origin);

    open = async (options) => {
        const tab = await this.tab(options);
        await tab.open();
        return tab;
    };

    async report() {
        for (const [at, tab] of this.tabs.entries()) {
            this.t.diagnostic(`tab ${at} said ${JSON.stringify(tab.statuses)}`);
            for (const { method, status, session, cursor, message } of tab.requests.slice(-20))
                this.t.diagnostic(`  ${method} ${status} ${session} ${cursor ?? ''} ${message?.method ?? ''}`);
            const name = this.t.name.replace(/\W+/g, '-');
            await mkdir(pictures, { recursive: true });
            await tab.page.screenshot({ path: `${pictures}failed-${name}-${at}.png` }).catch(() => {});
        }
        for (const complaint of this.complaints)
            this.t.diagnostic(`the browser says: ${complaint}`);
        this.t.diagnostic(this.server.errors);
    }

    #tabOf(page) {
        return this.tabs.find((tab) => tab.page === page);
    }

    #requested(request) {
        const url = new URL(request.url());
        if (/^(about|data|blob):/.test(url.protocol))
            return;
        if (!this.#origins.has(url.origin))
            this.strangers.push(url.href);
        if (url.pathname !== '/mcp' || request.isNavigationRequest())
            return;
        const tab = this.#tabOf(request.frame().page());
        if (!tab)
            return;
        const headers = request.headers();
        const entry = {
            method: request.method(),
            session: headers['mcp-session-id'],
            cursor: headers['last-event-id'],
            message: request.postDataJSON() ?? undefined,
            at: Date.now(),
            status: undefined,
        };
        tab.requests.push(entry);
        request.response().then((response) => {
            entry.status = response?.status();
            entry.headers = response?.headers();
            entry.answeredAt = Date.now();
        }, () => {});
    }
}
