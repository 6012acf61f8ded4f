import { AppShell, Burger } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useEffect, useRef, useState, type MouseEvent, type ReactNode } from 'react';
import type { AdminTone } from '../api/shapes.ts';
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

/** In a frame of another page there is the page alone, with the way to the others. */
export function Shell({ children }: { readonly children: ReactNode }) {
  return isFramed ? <FramedShell>{children}</FramedShell> : <WholeShell>{children}</WholeShell>;
}

/** The frame around every page: landmarks, navigation, who is logged in. */
function WholeShell({ children }: { readonly children: ReactNode }) {
  const { site } = useSession();
  const { place } = useLocation();
  const [opened, { toggle, close }] = useDisclosure(false);
  const main = useRef<HTMLElement>(null);
  const [tone, setTone] = useState<AdminTone>('good');

  // On phones the navigation covers the page: going somewhere closes it.
  useEffect(() => close(), [place, close]);

  const skip = (event: MouseEvent): void => {
    event.preventDefault();
    main.current?.focus();
  };

  return (
    <AppShell header={{ height: 56 }} navbar={{ width: 232, breakpoint: 'md', collapsed: { mobile: !opened } }} padding="md">
      <a href="#/" className={css['skip']} onClick={skip}>
        Skip to the content
      </a>
      <AppShell.Header className={css['header']}>
        <Burger
          opened={opened}
          onClick={toggle}
          hiddenFrom="md"
          size="sm"
          aria-label={opened ? 'Close the navigation' : 'Open the navigation'}
        />
        <a href="#/" className={css['brand']}>
          <img src={site.login.portal?.logo ?? './icon.svg'} alt="" />
          <span>{site.title}</span>
        </a>
        <Palette />
        <SchemeSwitch />
        <UserMenu />
      </AppShell.Header>
      <AppShell.Navbar p="sm" className={css['navbar']} aria-label="Screens">
        <Navigation />
      </AppShell.Navbar>
      <AppShell.Main ref={main} tabIndex={-1} className={css['main']}>
        <div className={css['content']}>
          <StateBar onTone={setTone} />
          {site.view_as === true && <ViewBanner />}
          {/* Colours speak of now: without an answer they say nothing. */}
          <div data-stale={tone === 'bad' ? true : undefined}>{children}</div>
        </div>
        <LeaveDialog />
      </AppShell.Main>
    </AppShell>
  );
}
