import type { Call } from 'belay-client';
import { useMcpClient } from 'belay-react';
import { useCallback, useEffect, useMemo, useRef, useSyncExternalStore } from 'react';
import { CallCard } from './call_card';
import { Guard } from './guard';
import { Logo } from './icons';
import { QuestionCard } from './question_card';
import type { Question, Questions } from './questions';

const NONE: readonly Question[] = [];

/** The calls, newest first, each with what it asks. */
export function Calls({ questions }: { questions: Questions }) {
  const { calls, forget, callTool } = useMcpClient();
  const asked = useSyncExternalStore(questions.subscribe, questions.all);
  const byCall = useMemo(() => {
    const groups = new Map<string, Question[]>();
    for (const question of asked) {
      const id = question.call?.id;
      if (id !== undefined) groups.set(id, [...(groups.get(id) ?? []), question]);
    }
    return groups;
  }, [asked]);
  const loose = asked.filter(({ call }) => !call);
  const ended = calls.filter(call => call.state !== 'running');
  const repeat = useCallback((call: Call) => void callTool(call.tool, { ...call.arguments }), [callTool]);

  const section = useRef<HTMLElement>(null);
  const newest = calls.at(-1)?.id;
  const last = useRef(newest);
  useEffect(() => {
    if (newest === undefined || newest === last.current) return;
    last.current = newest;
    section.current?.querySelector('article')?.scrollIntoView({ block: 'nearest' });
  }, [newest]);

  return (
    <section ref={section} className="calls" aria-label="Calls">
      <div className="calls-head">
        <h2>Calls</h2>
        {calls.length > 0 && <span className="count">{calls.length}</span>}
        <span className="spring" />
        {ended.length > 0 && (
          <button type="button" className="link-button" onClick={() => ended.forEach(forget)}>
            Remove ended
          </button>
        )}
      </div>
      {loose.map(question => (
        <div key={question.id} className="card asks">
          <QuestionCard question={question} />
        </div>
      ))}
      {calls.length === 0 && loose.length === 0 && (
        <div className="welcome">
          <Logo />
          <p className="welcome-title">No calls yet</p>
          <p className="quiet">
            Pick a tool and run it. Then reload the page or pull the plug: the call goes on, and nothing of it is lost.
          </p>
        </div>
      )}
      {calls.toReversed().map(call => (
        <Guard key={call.id} what={`A call of ${call.tool}`} action={{ name: 'Remove', run: () => forget(call) }}>
          <CallCard call={call} questions={byCall.get(call.id) ?? NONE} onForget={forget} onRepeat={repeat} />
        </Guard>
      ))}
    </section>
  );
}
