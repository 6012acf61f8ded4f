import { Button, Stack, Text, Title } from '@mantine/core';
import { logOut } from '../api/client.ts';
import { type ApiFault, explain, titleOf } from '../api/fault.ts';
import { leave } from './leave.ts';
import css from './session.module.css';
import { useTabTitle } from './tab-title.ts';

/** A session that may be here, and shows nothing for now: its tenant is suspended or gone. */
export function ClosedPage({ fault, onRetry }: { readonly fault: ApiFault; readonly onRetry: () => void }) {
  const title = titleOf(fault);
  useTabTitle(title);
  return (
    <main className={css['page']}>
      <div className={css['card']}>
        <Title order={1}>{title}</Title>
        <Text size="sm" mt="sm" mb="lg">
          {explain(fault)}
        </Text>
        <Stack gap="sm">
          <Button onClick={onRetry}>Try again</Button>
          <Button variant="default" onClick={() => void leave(logOut)}>
            Log out
          </Button>
        </Stack>
      </div>
    </main>
  );
}
