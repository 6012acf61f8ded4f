import { Stack } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useShowSecret } from '../actions/secret-provider.tsx';
import { createRecord } from '../api/client.ts';
import type { AdminResourceShape } from '../api/shapes.ts';
import { Notice } from '../feedback/notice.tsx';
import { sayDone } from '../feedback/toast.ts';
import { draftKey } from '../forms/drafts.ts';
import { RecordForm } from '../forms/record-form.tsx';
import { releaseGuard } from '../routing/leave-guard.ts';
import { navigate } from '../routing/use-location.ts';
import { useSession } from '../session/session-gate.tsx';
import { PageTitle } from '../shell/page-title.tsx';
import { lowerFirst } from '../values/format.ts';
import { Prose } from '../values/prose.tsx';
import { Card } from './card.tsx';
import { Way } from './record-page.tsx';

export function CreatePage({ resource }: { readonly resource: AdminResourceShape }) {
  const client = useQueryClient();
  const showSecret = useShowSecret();
  const list = { page: 'list', resource: resource.name } as const;

  const { user } = useSession();
  const create = async (values: Readonly<Record<string, unknown>>, { signal }: { readonly signal: AbortSignal }): Promise<void> => {
    const { message, id, secret } = await createRecord(resource.name, values, signal);
    if (secret !== undefined) showSecret(secret);
    releaseGuard();
    sayDone(message);
    void client.invalidateQueries();
    navigate(id === undefined ? list : { page: 'record', resource: resource.name, id }, {}, { replace: true });
  };

  return (
    <Stack gap="md" maw={720}>
      <Way resource={resource} />
      <PageTitle>{`New ${lowerFirst(resource.singular)}`}</PageTitle>
      {'refused' in resource.creation ? (
        <Notice tone="info">
          <Prose text={resource.creation.refused} />
        </Notice>
      ) : (
        <Card>
          <RecordForm
            form={resource.creation}
            draft={draftKey(user.id, resource.name, null)}
            submitLabel={`Create ${lowerFirst(resource.singular)}`}
            onSubmit={create}
            onCancel={() => navigate(list)}
          />
        </Card>
      )}
    </Stack>
  );
}
