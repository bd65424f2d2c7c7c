let isPressed = false;
addEventListener('pointerdown', () => (isPressed = true), true);
for (const end of ['pointerup', 'pointercancel']) addEventListener(end, () => (isPressed = false), true);

/**
 * Runs it at once, or when the pointer is released. A press on a button takes the focus from a field; a message that
 * appeared below the field at that moment would move the button away from under the pointer before the click.
 */
export function afterPress(work: () => void): void {
  if (!isPressed) return work();
  const done = new AbortController();
  for (const end of ['pointerup', 'pointercancel']) {
    addEventListener(
      end,
      () => {
        done.abort();
        setTimeout(work);
      },
      { signal: done.signal },
    );
  }
}
