// What the server asks the user, until it is answered.
import type { Call, ElicitationHandler, QuestionContext, SamplingHandler } from 'belay-client';
import type {
  CreateMessageRequestParams,
  CreateMessageResult,
  ElicitRequestParams,
  ElicitResult,
} from '@modelcontextprotocol/client';

interface Asked<Kind extends string, Params, Answer> {
  readonly kind: Kind;
  readonly id: number;
  /** The call that asks, if it is one of this page. */
  readonly call: Call | undefined;
  readonly params: Params;
  answer(answer: Answer): void;
  refuse(message: string): void;
}
export type Elicitation = Asked<'elicitation', ElicitRequestParams, ElicitResult>;
export type Sampling = Asked<'sampling', CreateMessageRequestParams, CreateMessageResult>;
export type Question = Elicitation | Sampling;

export class Questions {
  #all: readonly Question[] = [];
  #nextId = 1;
  readonly #listeners = new Set<() => void>();

  readonly elicitation: ElicitationHandler = (params, context) =>
    this.#ask<ElicitResult>(context, common => ({ kind: 'elicitation', params, ...common }));

  readonly sampling: SamplingHandler = (params, context) =>
    this.#ask<CreateMessageResult>(context, common => ({ kind: 'sampling', params, ...common }));

  /** Oldest first; the same array until it changes. */
  readonly all = (): readonly Question[] => this.#all;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  #ask<Answer>(
    { call, signal }: QuestionContext,
    make: (common: Pick<Asked<string, unknown, Answer>, 'id' | 'call' | 'answer' | 'refuse'>) => Question,
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      const end = (settle: () => void) => {
        signal.removeEventListener('abort', onAbort);
        this.#set(this.#all.filter(question => question.id !== id));
        settle();
      };
      const onAbort = () => end(() => reject(new Error('No longer asked')));
      signal.addEventListener('abort', onAbort);
      const question = make({
        id,
        call,
        answer: answer => end(() => resolve(answer)),
        refuse: message => end(() => reject(new Error(message))),
      });
      this.#set([...this.#all, question]);
    });
  }

  #set(all: readonly Question[]): void {
    this.#all = all;
    for (const listener of this.#listeners) listener();
  }
}
