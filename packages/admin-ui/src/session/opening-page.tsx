import { Button, Stack, Text, Title } from '@mantine/core';
import { openLink } from '../api/client.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { useSending } from '../forms/use-sending.ts';
import css from './session.module.css';
import { siteTitle, useTabTitle } from './tab-title.ts';

/** A link is opened by a click: programs that look at mails load pages and click nothing. */
export function OpeningPage({ token }: { readonly token: string }) {
  useTabTitle('Open');
  const { state, fault, send } = useSending(async () => {
    await openLink(token, false);
    window.location.reload();
  });
  return (
    <main className={css['page']}>
      <div className={css['card']}>
        <Title order={1}>{siteTitle}</Title>
        <Text size="sm" c="dimmed" mt={4} mb="lg">
          The link works once.
        </Text>
        <Stack gap="md">
          {fault !== null && <FaultNotice error={fault} />}
          {fault === null && (
            <Button loading={state !== 'idle'} onClick={send} fullWidth>
              Open
            </Button>
          )}
        </Stack>
      </div>
    </main>
  );
}
