import { Text, Title } from '@mantine/core';
import { useEffect } from 'react';
import type { AdminSession } from '../api/shapes.ts';
import { LoginForm } from './login-form.tsx';
import css from './session.module.css';

export function LoginPage({ onEntered }: { readonly onEntered: (session: AdminSession) => void }) {
  useEffect(() => {
    document.title = 'Log in · Admin';
  }, []);
  return (
    <main className={css['page']}>
      <div className={css['card']}>
        <img src="./icon.svg" alt="" className={css['mark']} />
        <Title order={1}>Admin</Title>
        <Text size="sm" c="dimmed" mt={4} mb="lg">
          Log in with your staff account.
        </Text>
        <LoginForm onEntered={onEntered} />
      </div>
    </main>
  );
}
