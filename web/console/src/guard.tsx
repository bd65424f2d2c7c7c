import { Component, type ReactNode } from 'react';
import { messageOf } from './format';
import { WarnIcon } from './icons';

interface Props {
  /** What it is that may fail. */
  what: string;
  children: ReactNode;
  /** What can be done about it. */
  action?: { name: string; run(): void };
}

/** Says what could not be shown, in its place: one odd value does not take the page with it. */
export class Guard extends Component<Props, { error?: unknown }> {
  override state: { error?: unknown } = {};

  static getDerivedStateFromError(error: unknown): { error: unknown } {
    return { error };
  }

  override render(): ReactNode {
    const { what, children, action } = this.props;
    if (this.state.error === undefined) return children;
    return (
      <div className="notice">
        <WarnIcon />
        <p>
          {what} cannot be shown: {messageOf(this.state.error)}
        </p>
        {action && (
          <button type="button" className="button small" onClick={action.run}>
            {action.name}
          </button>
        )}
      </div>
    );
  }
}
