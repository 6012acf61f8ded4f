import { Skeleton, Stack } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useShowSecret } from '../actions/secret-provider.tsx';
import { readRecord, updateRecord } from '../api/client.ts';
import type { AdminRecord, AdminResourceShape } from '../api/shapes.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { Notice } from '../feedback/notice.tsx';
import { sayDone } from '../feedback/toast.ts';
import { draftKey } from '../forms/drafts.ts';
import type { Conflict } from '../forms/form-source.ts';
import { RecordForm } from '../forms/record-form.tsx';
import { releaseGuard } from '../routing/leave-guard.ts';
import { navigate } from '../routing/use-location.ts';
import { useSession } from '../session/session-gate.tsx';
import { PageTitle } from '../shell/page-title.tsx';
import { Prose } from '../values/prose.tsx';
import { Card } from './card.tsx';
import { ChangedElsewhere, changesIn } from './changed-elsewhere.tsx';
import { Way } from './record-page.tsx';

const CLOSED = 'This cannot be edited in its present state.';

/** The record's links, by the name of their field. */
function titlesIn({ values }: AdminRecord): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) =>
      typeof value === 'object' && value !== null && 'resource' in value && 'text' in value ? [[name, value.text]] : [],
    ),
  );
}

export function EditPage({ resource, id }: { readonly resource: AdminResourceShape; readonly id: string }) {
  const client = useQueryClient();
  const { user } = useSession();
  const showSecret = useShowSecret();
  // Read once and not again by itself: what is being typed must not be pulled away. Nothing is kept: a form never begins with old values.
  const query = useQuery({
    queryKey: ['edit', resource.name, id],
    gcTime: 0,
    queryFn: ({ signal }) => readRecord(resource.name, id, undefined, signal),
    refetchOnMount: 'always',
    refetchOnWindowFocus: false,
  });
  const record = { page: 'record', resource: resource.name, id } as const;

  const save = async (
    fields: Readonly<Record<string, unknown>>,
    sending: { readonly tag: string | undefined; readonly signal: AbortSignal },
  ): Promise<void> => {
    const { message, secret } = await updateRecord(resource.name, id, { fields, ...sending });
    if (secret !== undefined) showSecret(secret);
    releaseGuard();
    sayDone(message);
    void client.invalidateQueries();
    navigate(record, {}, { replace: true });
  };

  const readAgain = async (): Promise<Conflict> => {
    const current = await readRecord(resource.name, id);
    if (current.form === undefined) throw new Error(current.refused?.edit ?? CLOSED);
    return { form: current.form, changes: changesIn(current) };
  };

  return (
    <Stack gap="md" maw={720}>
      <Way resource={resource} />
      {query.data === undefined && query.error !== null && <PageTitle>{resource.label}</PageTitle>}
      {query.error !== null && <FaultNotice error={query.error} onRetry={() => void query.refetch()} />}
      {query.data === undefined && query.error === null && <Skeleton height={240} />}
      {query.data !== undefined && (
        <>
          <PageTitle>{`Edit ${query.data.title}`}</PageTitle>
          {query.data.form === undefined ? (
            <Notice tone="info">
              <Prose text={query.data.refused?.edit ?? (resource.editable ? CLOSED : 'Records of this list are not edited here.')} />
            </Notice>
          ) : (
            <Card>
              <ChangedElsewhere resource={resource} record={query.data} />
              <RecordForm
                form={query.data.form}
                draft={draftKey(user.id, resource.name, id)}
                titles={titlesIn(query.data)}
                submitLabel="Save"
                onSubmit={save}
                onConflict={readAgain}
                onCancel={() => navigate(record)}
              />
            </Card>
          )}
        </>
      )}
    </Stack>
  );
}
