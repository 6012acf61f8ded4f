import { Title } from '@mantine/core';
import { useEffect, useRef } from 'react';
import { useSession } from '../session/session-gate.tsx';
import { isAsking } from '../feedback/is-asking.ts';
import { breakable } from '../values/value.tsx';
import css from './shell.module.css';

let isFirstPage = true;

/** The page's one main heading. Going to another page moves the focus here, so that it is announced; not out of a dialog. */
export function PageTitle({ children }: { readonly children: string }) {
  const { site } = useSession();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = children === site.title ? children : `${children} · ${site.title}`;
  }, [children, site.title]);
  useEffect(() => {
    if (isFirstPage) isFirstPage = false;
    else if (!isAsking()) heading.current?.focus({ preventScroll: true });
    window.scrollTo({ top: 0 });
  }, []);
  return (
    <Title order={1} ref={heading} tabIndex={-1} className={css['heading']}>
      {breakable(children)}
    </Title>
  );
}
