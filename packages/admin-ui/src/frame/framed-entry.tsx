import { Loader, Stack, Text } from '@mantine/core';
import { useEffect, useState } from 'react';
import { openLink, readSession } from '../api/client.ts';
import type { AdminLogin, AdminSession } from '../api/shapes.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { askForLink } from './host.ts';

/** In a frame nobody logs in: the page around it asks its back end for a link, and hands its token over. */
export function FramedEntry({ login, onEntered }: { readonly login: AdminLogin; readonly onEntered: (session: AdminSession) => void }) {
  const [fault, setFault] = useState<unknown>(null);
  const { origins } = login.portal ?? { origins: [] };
  useEffect(() => {
    let isBusy = false;
    const enter = async (token: string): Promise<void> => {
      if (isBusy) return;
      isBusy = true;
      try {
        await openLink(token, true);
        onEntered(await readSession());
      } catch (error) {
        setFault(error);
      } finally {
        isBusy = false;
      }
    };
    return askForLink(origins, (token) => void enter(token));
    // Once for each time that a session is needed.
    // oxlint-disable-next-line react/exhaustive-deps
  }, []);
  return (
    <Stack align="center" p="xl" gap="sm">
      {fault === null ? <Loader aria-label="Loading" /> : <FaultNotice error={fault} />}
      {window.parent === window && <Text size="sm">This page is for a frame in another page.</Text>}
    </Stack>
  );
}
