import { memo, useMemo, useState, useSyncExternalStore, type KeyboardEvent } from 'react';
import { clock, plural, shortClock } from './format';
import { PauseIcon, PlayIcon, ReceivedIcon, SentIcon } from './icons';
import { JsonTree } from './json_tree';
import type { Entry, Timeline } from './timeline';
import { WindowedList } from './windowed_list';

const ROW = 28;
const DETAIL = 220;
const ALL = '';

export function TimelinePanel({ timeline }: { timeline: Timeline }) {
  const live = useSyncExternalStore(timeline.subscribe, timeline.entries);
  const [held, setHeld] = useState<{ entries: readonly Entry[]; dropped: number }>();
  const [stream, setStream] = useState(ALL);
  const [open, setOpen] = useState<number>();

  const all = held?.entries ?? live;
  const dropped = held?.dropped ?? timeline.dropped;
  const streams = useMemo(() => streamsOf(all), [all]);
  const shown = useMemo(
    () => (stream === ALL ? all : all.filter(entry => entry.stream === stream || entry.kind === 'reloaded')),
    [all, stream],
  );
  const openIndex = open === undefined ? -1 : shown.findIndex(entry => entry.key === open);
  const unseen = held ? Math.max(0, timeline.dropped + live.length - held.dropped - held.entries.length) : 0;

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Escape' || open === undefined) return;
    setOpen(undefined);
    event.stopPropagation();
  };
  return (
    <aside className="timeline" aria-label="Timeline" onKeyDown={onKeyDown}>
      <div className="panel-head">
        <h2>Timeline</h2>
        <span className="count">{plural(shown.length, 'event')}</span>
        <span className="spring" />
        <button type="button" className="link-button" onClick={() => timeline.clear()}>
          Clear
        </button>
        <button
          type="button"
          className="icon-button"
          aria-pressed={held !== undefined}
          aria-label="Pause"
          title={held ? 'Go on' : 'Pause'}
          onClick={() => setHeld(held ? undefined : { entries: live, dropped: timeline.dropped })}
        >
          {held ? <PlayIcon /> : <PauseIcon />}
        </button>
      </div>
      <div className="timeline-filter">
        <label htmlFor="timeline-stream">Stream</label>
        <select id="timeline-stream" value={stream} onChange={event => setStream(event.target.value)}>
          <option value={ALL}>All</option>
          {stream !== ALL && !streams.has(stream) && <option value={stream}>{shortStream(stream)}</option>}
          {[...streams].map(([id, name]) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
        {held && <span className="count">{unseen > 0 ? `Paused, ${unseen} more` : 'Paused'}</span>}
      </div>
      {shown.length === 0 && <p className="empty">What the page and the server tell each other appears here.</p>}
      <WindowedList
        className="timeline-list"
        role="region"
        label="Events"
        count={shown.length}
        rowHeight={ROW}
        dropped={stream === ALL ? dropped : 0}
        rowKey={index => shown[index]!.key}
        expanded={openIndex < 0 ? undefined : { index: openIndex, height: DETAIL }}
        row={index => {
          const entry = shown[index]!;
          return <Row entry={entry} isOpen={index === openIndex} onToggle={setOpen} />;
        }}
      />
    </aside>
  );
}

interface RowProps {
  entry: Entry;
  isOpen: boolean;
  onToggle(key: number | undefined): void;
}

const Row = memo(function Row({ entry, isOpen, onToggle }: RowProps) {
  if (entry.kind === 'reloaded') {
    return (
      <p className="seam">
        <span>Page reloaded</span>
        <time>{clock(entry.at)}</time>
      </p>
    );
  }
  return (
    <>
      <button
        type="button"
        className={`wire-row ${entry.kind}`}
        tabIndex={-1}
        aria-expanded={isOpen}
        onClick={() => onToggle(isOpen ? undefined : entry.key)}
      >
        <time>{shortClock(entry.at)}</time>
        <Direction kind={entry.kind} />
        <span className="wire-summary">{entry.summary}</span>
        {entry.replayed && <span className="chip accent">replayed</span>}
        {entry.stream !== undefined && <span className="wire-stream">{shortStream(entry.stream)}</span>}
      </button>
      {isOpen && <Detail entry={entry} />}
    </>
  );
});

function Detail({ entry }: { entry: Entry }) {
  return (
    <div className="wire-detail">
      <dl>
        <Fact name="Time" value={clock(entry.at)} />
        {entry.stream !== undefined && <Fact name="Stream" value={entry.stream} />}
        {entry.eventId !== undefined && <Fact name="Event id" value={entry.eventId} />}
        {entry.detail !== undefined && <Fact name="How" value={entry.detail} />}
      </dl>
      {entry.message === undefined ? (
        entry.kind !== 'opened' && entry.kind !== 'ended' && <p className="quiet">Too large to keep across a reload.</p>
      ) : (
        <JsonTree value={entry.message} open={3} />
      )}
    </div>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd className="mono">{value}</dd>
    </div>
  );
}

const DIRECTIONS = { sent: 'sent', received: 'received', opened: 'stream opened', ended: 'stream ended' };

function Direction({ kind }: { kind: keyof typeof DIRECTIONS }) {
  return (
    <span className="wire-direction">
      {kind === 'sent' ? <SentIcon /> : kind === 'received' ? <ReceivedIcon /> : <span className="wire-dot" />}
      <span className="visually-hidden">{DIRECTIONS[kind]}</span>
    </span>
  );
}

/** The streams by id, with a name that says what they carry. */
function streamsOf(entries: readonly Entry[]): Map<string, string> {
  const names = new Map<string, string>();
  for (const { stream, summary, kind } of entries) {
    if (stream === undefined) continue;
    if (kind === 'sent' && !names.get(stream)?.includes(' ')) names.set(stream, `${shortStream(stream)} ${summary}`);
    else if (!names.has(stream)) names.set(stream, shortStream(stream));
  }
  return names;
}

/** Ids begin with what is random in them and end with a number. */
function shortStream(stream: string): string {
  return stream.length <= 10 ? stream : `…${stream.slice(-5)}`;
}
