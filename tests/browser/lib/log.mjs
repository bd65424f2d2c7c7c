// What a log shows, line by line, as somebody reads it who scrolls from its top to its end. Runs in the page.

/**
 * The lines by their place: a list that draws only what is in sight is read in steps, and a line that is there twice is
 * at two places.
 */
export async function readLog(log) {
    const drawn = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    const lines = new Map();
    const read = () => {
        const top = log.getBoundingClientRect().top + log.clientTop - log.scrollTop;
        const texts = document.createTreeWalker(log, NodeFilter.SHOW_TEXT);
        const parts = [];
        while (texts.nextNode()) {
            const range = document.createRange();
            range.selectNodeContents(texts.currentNode);
            const box = range.getBoundingClientRect();
            if (box.height > 0)
                parts.push({ middle: box.top + box.height / 2 - top, text: texts.currentNode.data.trim() });
        }
        // Stable: parts of one line stay in the order of the document.
        parts.sort((a, b) => (Math.abs(a.middle - b.middle) < 6 ? 0 : a.middle - b.middle));
        let line;
        let lowest = log.scrollTop + log.clientHeight;
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
        const lowest = read();
        const end = log.scrollHeight - log.clientHeight;
        if (log.scrollTop >= end - 1)
            break;
        // What is drawn ahead of the sight is read too; the next step begins where it ended.
        log.scrollTop = Math.min(end, lowest - 24);
    }
    return [...lines.values()].sort((a, b) => a.middle - b.middle).map(({ text }) => text);
}
