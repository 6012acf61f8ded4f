import { useEffect, useState } from 'react';
import { Icon } from '../icons/icon.tsx';
import { later } from '../later.ts';
import { isApple } from './platform.ts';
import css from './shell.module.css';
import { isAsking } from '../feedback/is-asking.ts';
import { LateOver } from '../feedback/late.tsx';

const PaletteDialog = later(async () => (await import('./palette-dialog.tsx')).PaletteDialog);
const ShortcutSheet = later(async () => (await import('./shortcuts.tsx')).ShortcutSheet);

/** The button, or Ctrl-K, goes to any screen, record or action by its name. `/` goes to the search of the list. */
export function Palette() {
  const [open, setOpen] = useState<'palette' | 'shortcuts' | null>(null);
  const close = () => setOpen(null);
  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent): void => {
      const isCommand = event.ctrlKey || event.metaKey;
      if (isCommand && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        // One of the two at a time; a question or a secret of the page stays until it is answered.
        setOpen((now) => (now === null && isAsking() ? null : 'palette'));
        // Menus and the like close as when somebody presses beside them.
        document.body.dispatchEvent(new MouseEvent('mousedown', { bubbles: true }));
      }
      if (isCommand || isTyping(event.target) || document.querySelector('[role="dialog"]') !== null) return;
      if (event.key === '?') {
        event.preventDefault();
        setOpen('shortcuts');
      }
      if (event.key === '/' && !event.altKey) {
        const search = document.querySelector<HTMLInputElement>('main [role="search"] input[type="search"]');
        if (search === null) return;
        event.preventDefault();
        search.focus();
        search.select();
      }
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);
  return (
    <>
      <button type="button" className={css['paletteButton']} aria-keyshortcuts="Control+K Meta+K" onClick={() => setOpen('palette')}>
        <Icon name="search" size={16} />
        <span>Search and actions</span>
        <kbd aria-hidden="true">{isApple() ? '⌘ K' : 'Ctrl K'}</kbd>
      </button>
      {open === 'palette' && (
        <LateOver>
          <PaletteDialog onClose={close} />
        </LateOver>
      )}
      {open === 'shortcuts' && (
        <LateOver>
          <ShortcutSheet onClose={close} />
        </LateOver>
      )}
    </>
  );
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (/^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable);
}
