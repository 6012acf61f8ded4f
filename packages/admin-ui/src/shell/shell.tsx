import { ActionIcon } from '@mantine/core';
import { useEffect, useRef, useState, type MouseEvent, type ReactNode } from 'react';
import type { AdminTone } from '../api/shapes.ts';
import { Icon } from '../icons/icon.tsx';
import { loadTheRest } from '../later.ts';
import { useLocation } from '../routing/use-location.ts';
import { useSession } from '../session/session-gate.tsx';
import { FramedShell } from '../frame/framed-shell.tsx';
import { isFramed } from '../frame/host.ts';
import { LeaveDialog } from './leave-dialog.tsx';
import { Navigation } from './navigation.tsx';
import { Palette } from './palette.tsx';
import { SchemeSwitch } from './scheme-switch.tsx';
import css from './shell.module.css';
import { StateBar } from './state-bar.tsx';
import { UserMenu } from './user-menu.tsx';
import { ViewBanner } from './view-banner.tsx';

const REST_AFTER_MS = 1000;

/** In a frame of another page there is the page alone, with the way to the others. */
export function Shell({ children }: { readonly children: ReactNode }) {
  useEffect(() => {
    const timer = window.setTimeout(() => void loadTheRest(), REST_AFTER_MS);
    return () => window.clearTimeout(timer);
  }, []);
  return isFramed ? <FramedShell>{children}</FramedShell> : <WholeShell>{children}</WholeShell>;
}

/** The frame around every page: landmarks, navigation, who is logged in. */
function WholeShell({ children }: { readonly children: ReactNode }) {
  const { site } = useSession();
  const { place } = useLocation();
  const [isOpen, setOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  const [tone, setTone] = useState<AdminTone>('good');

  // On phones the navigation covers the page: going somewhere closes it.
  useEffect(() => setOpen(false), [place]);

  const skip = (event: MouseEvent): void => {
    event.preventDefault();
    main.current?.focus();
  };

  return (
    <div className={css['shell']} data-open={isOpen ? true : undefined}>
      <a href="#/" className={css['skip']} onClick={skip}>
        Skip to the content
      </a>
      <header className={css['header']}>
        <ActionIcon
          variant="subtle"
          color="gray"
          c="var(--mantine-color-text)"
          size="lg"
          className={css['burger']}
          aria-expanded={isOpen}
          aria-label={isOpen ? 'Close the navigation' : 'Open the navigation'}
          onClick={() => setOpen(!isOpen)}
        >
          <Icon name={isOpen ? 'cross' : 'menu'} />
        </ActionIcon>
        <a href="#/" className={css['brand']}>
          <img src={site.login.portal?.logo ?? './icon.svg'} alt="" />
          <span>{site.title}</span>
        </a>
        <Palette />
        <SchemeSwitch />
        <UserMenu />
      </header>
      <nav className={css['navbar']} aria-label="Screens">
        <Navigation />
      </nav>
      <main ref={main} tabIndex={-1} className={css['main']}>
        <div className={css['content']}>
          <StateBar onTone={setTone} />
          {site.view_as === true && <ViewBanner />}
          {/* Colours speak of now: without an answer they say nothing. */}
          <div data-stale={tone === 'bad' ? true : undefined}>{children}</div>
        </div>
        <LeaveDialog />
      </main>
    </div>
  );
}
