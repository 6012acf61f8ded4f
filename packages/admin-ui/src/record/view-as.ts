import { beginView } from '../api/client.ts';
import type { AdminActionShape, AdminRecord, AdminResult } from '../api/shapes.ts';

/** The button that begins to look at the application as the user whom a record is about. */
export function viewAction({ view }: AdminRecord): AdminActionShape | undefined {
  if (view === undefined) return undefined;
  return {
    name: 'view-as',
    label: 'View as',
    tone: 'neutral',
    on: 'record',
    confirm: 'For 30 minutes, the pages of the application in this browser show what this user sees. Nothing can be changed there.',
    confirmLabel: 'Begin',
    fields: view.fields ?? [],
  };
}

export async function startView({ view, title }: AdminRecord, values: Readonly<Record<string, unknown>>): Promise<AdminResult> {
  if (view === undefined) throw new Error('This record is about no user.');
  const { user, tenant } = view;
  await beginView({ user, ...values, ...(tenant === null ? {} : { tenant }) });
  return { message: `This browser shows the application as ${title} sees it.` };
}
