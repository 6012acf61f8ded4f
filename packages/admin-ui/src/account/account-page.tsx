import { Stack } from '@mantine/core';
import { PageTitle } from '../shell/page-title.tsx';
import { FactorCard } from './factor-card.tsx';
import { PasswordCard } from './password-card.tsx';
import { SessionsCard } from './sessions-card.tsx';

/** The user's own account: password, one-time codes, sessions. */
export function AccountPage() {
  return (
    <Stack gap="md" maw={720}>
      <PageTitle>Your account</PageTitle>
      <PasswordCard />
      <FactorCard />
      <SessionsCard />
    </Stack>
  );
}
