import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { chooseTenant, readTenants } from '../api/client.ts';
import { leave } from '../session/leave.ts';
import css from './shell.module.css';

/** For which tenant the pages are. Choosing another one begins a new page: nothing of the one before is left in it. */
export function TenantSwitch() {
  const query = useQuery({ queryKey: ['tenants'], queryFn: ({ signal }) => readTenants(signal), staleTime: Number.POSITIVE_INFINITY });
  const [isBusy, setBusy] = useState(false);
  const { current = null, items = [] } = query.data ?? {};
  const isKnown = items.some(({ id }) => id === current);
  if (items.length < (isKnown ? 2 : 1)) return null;
  const choose = async (id: string): Promise<void> => {
    setBusy(true);
    await leave(() => chooseTenant(id));
    setBusy(false);
  };
  return (
    <label className={css['tenant']}>
      Organization
      <select value={isKnown ? (current ?? '') : ''} disabled={isBusy} onChange={(event) => void choose(event.currentTarget.value)}>
        {!isKnown && <option value="">Choose one</option>}
        {items.map(({ id, title }) => (
          <option key={id} value={id}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
}
