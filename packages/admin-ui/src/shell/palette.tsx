import { useEffect, useState } from 'react';
import { Icon } from '../icons/icon.tsx';
import { later } from '../later.ts';
import { isApple } from './platform.ts';
import css from './shell.module.css';
import { LateOver } from '../feedback/late.tsx';

const PaletteDialog = later(async () => (await import('./palette-dialog.tsx')).PaletteDialog);
const ShortcutSheet = later(async () => (await import('./shortcuts.tsx')).ShortcutSheet);

/** The button, or Ctrl-K, goes to any screen, record or action by its name. `/` goes to the search of the list. */
export function Palette() {
  const [isOpen, setOpen] = useState(false);
  const [isSheetOpen, setSheetOpen] = useState(false);
  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        setOpen(true);
      }
      if (
        event.key === '?' &&
        !isTyping(event.target) &&
        !event.ctrlKey &&
        !event.metaKey &&
        document.querySelector('[role="dialog"]') === null
      ) {
        event.preventDefault();
        setSheetOpen(true);
      }
      if (event.key === '/' && !isTyping(event.target) && !event.ctrlKey && !event.metaKey && !event.altKey) {
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
      <button type="button" className={css['paletteButton']} aria-keyshortcuts="Control+K Meta+K" onClick={() => setOpen(true)}>
        <Icon name="search" size={16} />
        <span>Search and actions</span>
        <kbd aria-hidden="true">{isApple() ? '⌘ K' : 'Ctrl K'}</kbd>
      </button>
      {isOpen && (
        <LateOver>
          <PaletteDialog onClose={() => setOpen(false)} />
        </LateOver>
      )}
      {isSheetOpen && (
        <LateOver>
          <ShortcutSheet onClose={() => setSheetOpen(false)} />
        </LateOver>
      )}
    </>
  );
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (/^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable);
}
