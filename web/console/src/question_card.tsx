import type { ElicitRequestURLParams } from '@modelcontextprotocol/client';
import { object, text } from 'belay-client/shapes';
import { useId, useState, type FormEvent, type ReactNode } from 'react';
import { Content } from './content';
import { LinkIcon } from './icons';
import type { Elicitation, Question, Sampling } from './questions';
import { FormFields } from './schema_form/form_fields';
import { useForm } from './schema_form/use_form';
import { usePersisted } from './storage';

export function QuestionCard({ question }: { question: Question }) {
  if (question.kind === 'sampling') return <SamplingCard question={question} />;
  return question.params.mode === 'url' ? (
    <UrlCard question={question} params={question.params} />
  ) : (
    <FormCard question={question} schema={question.params.requestedSchema} />
  );
}

function FormCard({ question, schema }: { question: Elicitation; schema: unknown }) {
  const state = useForm(schema, `answer:${keyOf(question)}`);
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    const content = state.submit();
    if (content) question.answer({ action: 'accept', content: content as Record<string, string> });
  };
  return (
    <form noValidate onSubmit={onSubmit}>
      <Frame question={question} kicker="The server asks">
        <p className="question-text">{question.params.message}</p>
        <FormFields state={state} />
        <div className="actions">
          <button type="submit" className="button primary">
            Accept
          </button>
          <OtherAnswers question={question} />
        </div>
      </Frame>
    </form>
  );
}

/** The page is opened by a click on it, never by itself. */
function UrlCard({ question, params }: { question: Elicitation; params: ElicitRequestURLParams }) {
  const [opened, setOpened] = useState(false);
  const url = webUrl(params.url);
  return (
    <Frame question={question} kicker="The server asks you to open a page">
      <p className="question-text">{params.message}</p>
      <p className="question-url">
        <strong>{url ? url.host : 'Not a web address'}</strong>
        <span className="mono quiet">{params.url}</span>
      </p>
      <div className="actions">
        {url && (
          <a
            className="button"
            href={url.href}
            target="_blank"
            rel="noopener noreferrer"
            onClick={() => setOpened(true)}
          >
            <LinkIcon />
            Open {url.host}
          </a>
        )}
        <button
          type="button"
          className={opened ? 'button primary' : 'button'}
          disabled={!url}
          onClick={() => question.answer({ action: 'accept' })}
        >
          Accept
        </button>
        <OtherAnswers question={question} />
      </div>
    </Frame>
  );
}

function webUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url && (url.protocol === 'https:' || url.protocol === 'http:') ? url : undefined;
}

function OtherAnswers({ question }: { question: Elicitation }) {
  return (
    <>
      <button type="button" className="button" onClick={() => question.answer({ action: 'decline' })}>
        Decline
      </button>
      <button type="button" className="button quiet" onClick={() => question.answer({ action: 'cancel' })}>
        Dismiss
      </button>
    </>
  );
}

const answerShape = object({ text, model: text });

function SamplingCard({ question }: { question: Sampling }) {
  const id = useId();
  const [answer, setAnswer] = usePersisted(`answer:${keyOf(question)}`, answerShape, () => ({ text: '', model: 'person' }));
  const { messages, systemPrompt, maxTokens } = question.params;
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    question.answer({
      role: 'assistant',
      model: answer.model || 'person',
      content: { type: 'text', text: answer.text },
      stopReason: 'endTurn',
    });
  };
  return (
    <form onSubmit={onSubmit}>
      <Frame question={question} kicker="The server asks your model">
        {systemPrompt && <p className="quiet">{systemPrompt}</p>}
        {messages.map((message, index) => (
          <div key={index} className={`message ${message.role}`}>
            <p className="message-role">{message.role}</p>
            {[message.content].flat().map((block, at) => (
              <Content key={at} block={block as Parameters<typeof Content>[0]['block']} />
            ))}
          </div>
        ))}
        <div className="fields">
          <div className="field">
            <div className="field-head">
              <label htmlFor={`${id}-text`}>Answer</label>
              <span className="field-type">at most {maxTokens} tokens</span>
            </div>
            <textarea
              id={`${id}-text`}
              rows={3}
              value={answer.text}
              onChange={event => setAnswer({ ...answer, text: event.target.value })}
            />
          </div>
          <div className="field">
            <div className="field-head">
              <label htmlFor={`${id}-model`}>Model</label>
              <span className="field-type">the name that is told to the server</span>
            </div>
            <input
              id={`${id}-model`}
              autoComplete="off"
              value={answer.model}
              onChange={event => setAnswer({ ...answer, model: event.target.value })}
            />
          </div>
        </div>
        <div className="actions">
          <button type="submit" className="button primary">
            Send
          </button>
          <button type="button" className="button" onClick={() => question.refuse('The user declined the request')}>
            Decline
          </button>
        </div>
      </Frame>
    </form>
  );
}

function Frame({ question, kicker, children }: { question: Question; kicker: string; children: ReactNode }) {
  const tool = question.call?.tool;
  return (
    <div className="question" role="group" aria-label={tool === undefined ? 'Question' : `Question of ${tool}`}>
      <p className="question-kicker">{kicker}</p>
      {children}
    </div>
  );
}

/** The same for the same question after a reload. */
function keyOf({ call, kind, params }: Question): string {
  return `${call?.id ?? ''}:${kind === 'elicitation' ? params.message : JSON.stringify(params.messages).slice(0, 100)}`;
}
