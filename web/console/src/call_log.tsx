import type { Call, LogLine } from 'belay-client';
import { useState } from 'react';
import { CopyButton } from './content';
import { clock, oneLine, plural, shortClock } from './format';
import { gapText } from './gap';
import { JsonTree } from './json_tree';
import { reloads } from './storage';
import { WindowedList } from './windowed_list';

const ROW = 22;
const DETAIL = 120;
/** More would not fit on one line. */
const MAX_LINE = 300;

/** The log of a call, with a seam where the page was reloaded or the server no longer has what was missed. */
export function CallLog({ call }: { call: Call }) {
  const { log, dropped } = call;
  const [open, setOpen] = useState<number>();
  const seams = seamsOf(call);
  const openIndex = open === undefined ? -1 : open - dropped;
  const isOpen = openIndex >= 0 && openIndex < log.length;

  /** The index of a row's line, or the seam that the row is. */
  const rowAt = (row: number): { line: number } | { seam: number } => {
    let before = 0;
    for (const { line, at } of seams) {
      if (row === line + before) return { seam: at };
      if (row < line + before) break;
      before += 1;
    }
    return { line: row - before };
  };
  const rowOf = (line: number) => line + seams.filter(seam => seam.line <= line).length;

  return (
    <div className={log.length > 0 ? 'log' : 'log log-none'}>
      {log.length > 0 && (
        <div className="log-head">
          <span>Log</span>
          <span className="count">
            {plural(log.length + dropped, 'line')}
            {dropped > 0 && `, the last ${log.length.toLocaleString('en')} kept`}
          </span>
          <span className="spring" />
          <CopyButton text={() => log.map(asText).join('\n')} />
        </div>
      )}
      <WindowedList
        className="log-list"
        role="log"
        label="Log"
        count={log.length + seams.length}
        rowHeight={ROW}
        dropped={dropped}
        expanded={isOpen ? { index: rowOf(openIndex), height: DETAIL } : undefined}
        rowKey={index => {
          const row = rowAt(index);
          return 'seam' in row ? `seam ${row.seam}` : row.line + dropped;
        }}
        row={index => {
          const row = rowAt(index);
          if ('seam' in row) {
            return (
              <p className="seam">
                <span>Page reloaded</span>
                <time>{clock(row.seam)}</time>
              </p>
            );
          }
          const line = log[row.line];
          const isThis = isOpen && row.line === openIndex;
          const toggle = () => setOpen(isThis ? undefined : row.line + dropped);
          return line && <Line line={line} tool={call.tool} isOpen={isThis} onToggle={toggle} />;
        }}
      />
    </div>
  );
}

interface LineProps {
  line: LogLine;
  /** A logger of this name needs no telling. */
  tool: string;
  isOpen: boolean;
  onToggle(): void;
}

function Line({ line, tool, isOpen, onToggle }: LineProps) {
  const gap = gapText(line.logger, line.data);
  if (gap !== undefined) {
    return (
      <p className="seam gap" title={`${gap} (${clock(line.at)})`}>
        <span>{gap}</span>
      </p>
    );
  }
  return (
    <>
      <button
        type="button"
        className={`log-line level-${line.level}`}
        tabIndex={-1}
        aria-expanded={isOpen}
        title={`${clock(line.at)}${line.recovered ? ', sent while this page was not connected' : ''}`}
        onClick={onToggle}
      >
        <time>{shortClock(line.at)}</time>
        <span className="log-level">{line.level}</span>
        {line.logger && line.logger !== tool && <span className="log-logger">{line.logger}</span>}
        <span className="log-data">{oneLine(line.data).slice(0, MAX_LINE)}</span>
        {line.recovered && <span className="log-recovered">recovered</span>}
      </button>
      {isOpen && (
        <div className="log-detail">
          {typeof line.data === 'string' ? <pre>{line.data}</pre> : <JsonTree value={line.data} open={2} />}
        </div>
      )}
    </>
  );
}

function asText(line: LogLine): string {
  const text = gapText(line.logger, line.data) ?? oneLine(line.data);
  return `${new Date(line.at).toISOString()} ${line.level} ${line.logger ? `${line.logger}: ` : ''}${text}`;
}

/** The reloads while the call ran, each with the line that follows it. */
function seamsOf({ log, startedAt, endedAt = Infinity }: Call): { line: number; at: number }[] {
  const from = Math.max(startedAt, log[0]?.at ?? Infinity);
  return reloads.filter(at => at > from && at < endedAt).map(at => ({ at, line: firstFrom(log, at) }));
}

/** The index of the first line at or after a time; lines are in order. */
function firstFrom(log: readonly LogLine[], at: number): number {
  let low = 0;
  let high = log.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (log[middle]!.at < at) low = middle + 1;
    else high = middle;
  }
  return low;
}
