import { Button } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { endView, readView } from '../api/client.ts';
import { sayFailed } from '../feedback/toast.ts';
import { Icon } from '../icons/icon.tsx';
import { Time } from '../values/time.tsx';
import css from './shell.module.css';

const REFRESH_MS = 30_000;

/** While the browser sees the application as a user does: whom, why, until when, and the way out. */
export function ViewBanner() {
  const client = useQueryClient();
  const { data } = useQuery({ queryKey: ['view'], queryFn: ({ signal }) => readView(signal), refetchInterval: REFRESH_MS, retry: false });
  const view = data?.view ?? null;
  if (view === null) return null;
  const end = async (): Promise<void> => {
    try {
      await endView();
    } catch (error) {
      sayFailed(error);
    }
    await client.invalidateQueries({ queryKey: ['view'] });
  };
  return (
    <section className={css['banner']} data-tone="warning" aria-label="View as a user">
      <Icon name="user" />
      <span role="status">
        In this browser the application shows what <strong>{view.user.username}</strong>
        {view.tenant !== null && ` sees in ${view.tenant_name ?? view.tenant}`}
        {view.tenant === null && ' sees'}; nothing can be changed there. Reason: {view.reason}. Ends <Time iso={view.expires_at} />.
      </span>
      <Button size="compact-sm" variant="default" onClick={() => void end()}>
        End the view
      </Button>
    </section>
  );
}
