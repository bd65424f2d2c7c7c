// A tab with the console, by what a person finds on it: roles, names and texts, no classes.
import assert from 'node:assert/strict';
import { checkResult, expectedNotes } from '../../clients/lib/expect.mjs';
import { eventually } from './eventually.mjs';
import { readLog } from './log.mjs';

/** Landmarks of one page have names of their own: a number follows in all but one. */
const isResult = /^Result$/;

export class Tab {
    /** What the status said, each change once, reloads included. */
    statuses = [];
    /** Requests to the endpoint: method, session, cursor, message, status, when. */
    requests = [];

    constructor(page, url) {
        this.page = page;
        this.url = url;
        this.status = page.getByRole('status');
    }

    async open() {
        await this.page.goto(this.url.href);
        await this.says('Connected');
    }

    /** The page is gone and its tab stays. */
    async leave() {
        await this.page.goto('about:blank');
    }

    /** The same tab loads the page again. */
    async comeBack() {
        await this.page.goto(this.url.href);
    }

    async says(text) {
        await eventually(async () => assert.equal(await this.status.textContent(), text));
    }

    /** Waits until the status has said these texts, in this order, since its `since`-th change. */
    async said(texts, since = 0) {
        await eventually(() => {
            const left = [...texts];
            for (const status of this.statuses.slice(since))
                if (status === left[0])
                    left.shift();
            assert.deepEqual(left, [], `the status said ${JSON.stringify(this.statuses.slice(since))}`);
        });
    }

    get sessions() {
        return [...new Set(this.requests.map(({ session }) => session).filter((session) => session))];
    }

    button(name) {
        return this.page.getByRole('button', { name, exact: true });
    }

    get form() {
        return this.page.locator('form').filter({ has: this.button('Run') });
    }

    async select(tool) {
        // A phone shows one part of the page at a time.
        if (this.page.viewportSize().width < 600)
            await this.button('Browse').click();
        await this.button(tool).click();
        await this.page.getByRole('heading', { name: tool, exact: true }).first().waitFor();
    }

    async fill(fields, form = this.form) {
        for (const [name, value] of Object.entries(fields)) {
            const field = form.getByLabel(name, { exact: true });
            if (typeof value === 'boolean')
                await field.setChecked(value);
            else if (await field.evaluate((element) => element.localName === 'select'))
                await field.selectOption({ label: value });
            else
                await field.fill(String(value));
        }
    }

    /** Calls a tool; `mark` is a text that only this call's article has. */
    async call(tool, args = {}, mark = args.messagePrefix) {
        await this.select(tool);
        await this.fill(args);
        await this.button('Run').click();
        return this.find(tool, mark);
    }

    find(tool, mark) {
        const articles = this.page.getByRole('article', { name: `${tool} call`, exact: true });
        return new Call(this, mark === undefined ? articles : articles.filter({ hasText: mark }));
    }

    get results() {
        return this.page.getByRole('region', { name: isResult });
    }
}

export class Call {
    constructor(tab, article) {
        this.tab = tab;
        this.article = article;
        this.log = article.getByRole('log');
        this.bar = article.getByRole('progressbar');
        this.result = article.getByRole('region', { name: isResult });
        this.question = article.locator('form');
        this.cancel = article.getByRole('button', { name: 'Cancel', exact: true });
    }

    /** Waits until the log shows the `count`-th message or a later one. Unless it is scrolled it shows its end. */
    async reaches(count) {
        await eventually(async () => {
            const shown = (await this.log.innerText()).matchAll(/ (\d+)\/\d+ \(/g);
            const numbers = [...shown].map(([, number]) => Number(number));
            assert.ok(Math.max(0, ...numbers) >= count, `message ${count} is not there`);
        });
    }

    async lines() {
        return (await this.log.evaluate(readLog)).map(({ text }) => text);
    }

    /** Lines at so many places of a long log, and where in it they are, from 0 to 1. */
    samples(count) {
        return this.log.evaluate(readLog, count);
    }

    /** The lines that are not the page's own, without what stands beside the message. */
    async messages(marked = () => true) {
        return (await this.lines()).filter((line) => !/^Page reloaded\b/.test(line) && marked(line)).map((line) =>
            line.replace(/^[\d:.]+ \w+ (resumability )?/, '').replace(/ recovered$/, ''));
    }

    recovered() {
        return this.messages((line) => / recovered$/.test(line));
    }

    async ended() {
        await this.result.waitFor();
    }

    async resultText() {
        return this.result.innerText();
    }

    /** Every message once, in order; then one result, in this article and in no other. */
    async checkWhole(args) {
        await this.ended();
        await eventually(async () => assert.deepEqual(await this.messages(), expectedNotes(args)), 8000);
        await this.checkOnce();
        assert.equal(await this.tab.results.filter({ hasText: args.messagePrefix }).count(), 1, 'in no other article');
        const text = await this.resultText();
        const json = text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1);
        checkResult({ content: [{ type: 'text', text: json }] }, args);
    }

    async checkOnce() {
        assert.equal(await this.article.count(), 1, 'one article');
        assert.equal(await this.result.count(), 1, 'one result');
        assert.equal(await this.cancel.count(), 0, 'nothing left to cancel');
    }
}
