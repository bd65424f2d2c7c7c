import type { Call, CallState } from 'belay-client';
import { useCall } from 'belay-react';
import { memo } from 'react';
import { CallLog } from './call_log';
import { CallResult } from './call_result';
import { duration, oneLine } from './format';
import { RemoveIcon, StopIcon } from './icons';
import { JsonTree } from './json_tree';
import { QuestionCard } from './question_card';
import type { Question } from './questions';
import { reloads, useNow } from './storage';

interface Props {
  call: Call;
  questions: readonly Question[];
  onForget(call: Call): void;
  onRepeat(call: Call): void;
}

export const CallCard = memo(function CallCard({ call: given, questions, onForget, onRepeat }: Props) {
  const call = useCall(given);
  const isRunning = call.state === 'running';
  const asks = questions.length > 0;
  const tone = asks ? 'asks' : call.state === 'done' && call.value?.isError ? 'failed' : call.state;
  return (
    <article className={`card ${tone}`} aria-label={`${call.tool} call`}>
      <div className="card-head">
        <span className={`card-dot ${tone}`} aria-hidden="true" />
        <h3>{call.tool}</h3>
        <span className="card-tags">
          <span className={`card-state ${tone}`}>{asks ? 'Waits for you' : stateText(call)}</span>
          {wasResumed(call) && (
            <span className="chip" title="It went on when the page was reloaded">
              resumed
            </span>
          )}
          <Kept call={call} />
        </span>
        <span className="spring" />
        <Elapsed call={call} />
        {isRunning ? (
          <button type="button" className="button small" onClick={() => call.cancel()}>
            <StopIcon />
            Cancel
          </button>
        ) : (
          <button
            type="button"
            className="icon-button"
            aria-label="Remove"
            title="Remove"
            onClick={() => onForget(call)}
          >
            <RemoveIcon />
          </button>
        )}
      </div>
      <Arguments call={call} />
      {((isRunning && !asks) || call.progress) && <Progress call={call} />}
      <CallLog call={call} />
      {questions.map(question => (
        <QuestionCard key={question.id} question={question} />
      ))}
      {!isRunning && <CallResult call={call} onRepeat={onRepeat} />}
    </article>
  );
});

/** Says so if a reload would lose it, or some of it. What one has lost is said where it is missing. */
function Kept({ call: { kept, recovered, state } }: { call: Call }) {
  if (kept === 'whole' || (kept === 'partly' && recovered && state !== 'running')) return null;
  return kept === 'not' ? (
    <span className="chip" title="The browser’s storage has no room for it, or newer calls needed the room">
      not kept over a reload
    </span>
  ) : (
    <span className="chip" title="Arguments, log or result are too large for the browser’s storage">
      in part not kept over a reload
    </span>
  );
}

const STATES: Record<CallState, string> = {
  running: 'Running',
  done: 'Done',
  failed: 'Failed',
  cancelled: 'Cancelled',
  lost: 'Lost',
};

/** Whether the page was reloaded while it ran. */
function wasResumed({ startedAt, endedAt = Infinity }: Call): boolean {
  return reloads.some(at => at > startedAt && at < endedAt);
}

function stateText(call: Call): string {
  return call.state === 'done' && call.value?.isError ? 'Tool error' : STATES[call.state];
}

function Elapsed({ call }: { call: Call }) {
  const now = useNow(100, call.state === 'running');
  return (
    <time className="elapsed">{duration((call.endedAt ?? now) - call.startedAt, call.endedAt !== undefined)}</time>
  );
}

function Arguments({ call }: { call: Call }) {
  if (Object.keys(call.arguments).length === 0) return null;
  return (
    <details className="card-arguments">
      <summary>
        <span className="mono">{oneLine(call.arguments).slice(0, 300)}</span>
      </summary>
      <JsonTree value={call.arguments} open={2} />
    </details>
  );
}

/** Without a total it is known that something happens, not how much is left. */
function Progress({ call }: { call: Call }) {
  const { progress, state } = call;
  const total = progress?.total;
  const done = progress?.progress ?? 0;
  const isKnown = total !== undefined && total > 0;
  const share = isKnown ? Math.min(1, Math.max(0, done / total)) : 0;
  const isMoving = state === 'running' && !isKnown;
  return (
    <div className="progress">
      <div
        role="progressbar"
        aria-label="Progress"
        className={isMoving ? 'bar unknown' : 'bar'}
        aria-valuemin={0}
        aria-valuemax={isKnown ? total : undefined}
        aria-valuenow={isKnown ? done : undefined}
        aria-valuetext={progress?.message}
      >
        <span style={isMoving ? undefined : { transform: `scaleX(${share})` }} />
      </div>
      {progress && (
        <span className="progress-count">
          {done.toLocaleString('en')}
          {isKnown && ` / ${total.toLocaleString('en')}`}
        </span>
      )}
      {progress?.message && <p className="progress-message">{progress.message}</p>}
    </div>
  );
}
