import { Anchor, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { readLogin } from '../api/client.ts';
import type { AdminSession } from '../api/shapes.ts';
import { LOGIN, LoginEntry } from './login-entry.tsx';
import { FramedEntry } from '../frame/framed-entry.tsx';
import { isFramed } from '../frame/host.ts';
import css from './session.module.css';
import { siteTitle, useTabTitle } from './tab-title.ts';
import { later } from '../later.ts';
import { Late } from '../feedback/late.tsx';

const ResetForm = later(async () => (await import('./reset-form.tsx')).ResetForm);

export function LoginPage({ onEntered, onSetup }: { readonly onEntered: (session: AdminSession) => void; readonly onSetup: () => void }) {
  const [forgotten, setForgotten] = useState(false);
  const { data: login } = useQuery({ queryKey: LOGIN, queryFn: ({ signal }) => readLogin(signal), staleTime: Number.POSITIVE_INFINITY });
  const isPortal = login?.site === 'portal';
  const title = login?.title ?? siteTitle;
  useTabTitle('Log in');
  if (isFramed) return login === undefined ? null : <FramedEntry login={login} onEntered={onEntered} />;
  const byLink = login?.portal?.by_link === true;
  return (
    <main className={css['page']}>
      <div className={css['card']}>
        <img src={login?.portal?.logo ?? './icon.svg'} alt="" className={css['mark']} />
        <Title order={1}>{title}</Title>
        <Text size="sm" c="dimmed" mt={4} mb="lg">
          {forgotten
            ? 'A link to set a new password is sent by mail.'
            : byLink
              ? 'Open the link that you were given. It works once and for a short time: ask for a new one where you got it.'
              : isPortal
                ? 'Log in with your account.'
                : 'Log in with your staff account.'}
        </Text>
        {forgotten ? (
          <Late height={120}>
            <ResetForm onDone={() => setForgotten(false)} />
          </Late>
        ) : (
          !byLink && <LoginEntry onEntered={onEntered} onSetup={onSetup} />
        )}
        {!forgotten && login?.account === true && (
          <Anchor component="button" type="button" size="sm" mt="md" onClick={() => setForgotten(true)}>
            Forgot your password?
          </Anchor>
        )}
      </div>
    </main>
  );
}
