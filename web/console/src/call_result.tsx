import type { Call } from 'belay-client';
import { Content } from './content';
import { bytes } from './format';
import { WarnIcon } from './icons';
import { JsonTree } from './json_tree';

interface Props {
  call: Call;
  onRepeat(call: Call): void;
}

/** How a call ended: what it gave, or why it gave nothing and what can be done. */
export function CallResult({ call, onRepeat }: Props) {
  const { value } = call;
  return (
    <section className="result" aria-label="Result">
      {call.state !== 'done' || !value ? (
        <Ending call={call} onRepeat={onRepeat} />
      ) : (
        <>
          {value.isError && (
            <p className="result-note bad">
              <WarnIcon />
              The tool reports an error. What it says may help to mend the arguments.
            </p>
          )}
          {value.content.map((block, index) => (
            <Content key={index} block={block} />
          ))}
          {value.structuredContent !== undefined && (
            <div className="content">
              <p className="content-note">Structured content</p>
              <JsonTree value={value.structuredContent} open={2} />
            </div>
          )}
          {value.content.length === 0 && value.structuredContent === undefined && (
            <p className="quiet">Done, with nothing to show.</p>
          )}
        </>
      )}
    </section>
  );
}

function Ending({ call, onRepeat }: Props) {
  const { title, hint } = ending(call);
  const isProblem = call.state === 'failed' || call.state === 'lost';
  return (
    <div className={isProblem ? 'ending bad' : 'ending'}>
      <p className="ending-title">
        <WarnIcon />
        {title}
      </p>
      {isProblem && call.error?.message && <p>{call.error.message}</p>}
      {isProblem && call.error?.data !== undefined && <JsonTree value={call.error.data} open={1} />}
      <p className="quiet">{hint}</p>
      {call.hasArguments && (
        <button type="button" className="button small" onClick={() => onRepeat(call)}>
          Call again
        </button>
      )}
    </div>
  );
}

function ending(call: Call): { title: string; hint: string } {
  switch (call.state) {
    case 'failed': {
      const code = call.error?.code;
      return {
        title: code === undefined ? 'The server answered with an error' : `The server answered with error ${code}`,
        hint:
          code === -32602
            ? 'Check the arguments, then call it again.'
            : 'Call it again, or look into the server’s log.',
      };
    }
    case 'cancelled':
      return { title: 'Cancelled', hint: 'It was stopped on request and has no result.' };
    case 'lost':
      return {
        title: 'The answer is lost',
        hint: 'The tool may have finished or not. Call it again if doing it twice does no harm.',
      };
    default:
      return {
        title: `The result${call.resultBytes === undefined ? '' : ` of ${bytes(call.resultBytes)}`} was too large to keep`,
        hint: call.hasArguments
          ? 'It was shown before the page was reloaded. Call it again to see it once more.'
          : 'It was shown before the page was reloaded. Its arguments were too large to keep as well.',
      };
  }
}
