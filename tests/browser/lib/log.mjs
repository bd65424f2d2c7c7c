// What a log shows, line by line, as somebody reads it who scrolls from its top to its end. Runs in the page.

/**
 * The lines and their places: a list that draws only what is in sight is read in steps, and a line that is there twice
 * is at two places. With `samples`, it is looked at in that many places only.
 */
export async function readLog(log, samples) {
    const drawn = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(() => resolve())));
    const lines = new Map();
    const read = () => {
        const top = log.getBoundingClientRect().top + log.clientTop - log.scrollTop;
        const texts = document.createTreeWalker(log, NodeFilter.SHOW_TEXT);
        const parts = [];
        while (texts.nextNode()) {
            const range = document.createRange();
            range.selectNodeContents(texts.currentNode);
            const box = range.getBoundingClientRect();
            // What is there for screen readers only is clipped to a point.
            if (box.height > 0 && texts.currentNode.parentElement.getBoundingClientRect().width > 2)
                parts.push({ middle: box.top + box.height / 2 - top, text: texts.currentNode.data.trim() });
        }
        // Stable: parts of one line stay in the order of the document.
        parts.sort((a, b) => (Math.abs(a.middle - b.middle) < 6 ? 0 : a.middle - b.middle));
        let line;
        let lowest = 0;
        for (const { middle, text } of parts) {
            if (!line || middle - line.middle > 6) {
                line = { middle, text };
                lines.set(Math.round(middle / 4), line);
                lowest = Math.max(lowest, middle);
            } else {
                line.text += ` ${text}`;
            }
        }
        return lowest;
    };
    for (log.scrollTop = 0;;) {
        await drawn();
        let lowest = read();
        const end = log.scrollHeight - log.clientHeight;
        // A list that has not caught up with the scrolling yet is looked at once more.
        const isBehind = () => lowest < Math.min(log.scrollTop + log.clientHeight, log.scrollHeight) - 30;
        for (let tries = 0; tries < 20 && isBehind(); ++tries) {
            await drawn();
            lowest = read();
        }
        if (log.scrollTop >= end - 1)
            break;
        // What is drawn ahead of the sight is read too; the next step begins where it ended.
        const next = samples ? log.scrollTop + end / samples : Math.max(log.scrollTop + 1, lowest - 24);
        log.scrollTop = Math.min(end, next);
    }
    return [...lines.values()].sort((a, b) => a.middle - b.middle)
        .map(({ middle, text }) => ({ text, share: middle / log.scrollHeight }));
}
