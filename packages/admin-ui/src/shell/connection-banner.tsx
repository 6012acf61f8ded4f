import { Button } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { useConnectionDown } from '../api/connection.ts';
import { Icon } from '../icons/icon.tsx';
import css from './shell.module.css';

const RETRY_MS = 5000;

/** While the server cannot be reached, the page keeps what it has and asks again by itself. */
export function ConnectionBanner() {
  const client = useQueryClient();
  const down = useConnectionDown();
  useEffect(() => {
    if (!down) return undefined;
    const timer = window.setInterval(() => void client.refetchQueries({ type: 'active' }), RETRY_MS);
    return () => window.clearInterval(timer);
  }, [down, client]);
  if (!down) return null;
  return (
    <div className={css['banner']} data-tone="warning" role="status">
      <Icon name="offline" />
      <span>The server cannot be reached. The data may be outdated; retrying every few seconds.</span>
      <Button size="compact-sm" variant="default" onClick={() => void client.refetchQueries({ type: 'active' })}>
        Try now
      </Button>
    </div>
  );
}
