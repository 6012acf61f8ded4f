import { Stack } from '@mantine/core';
import { PageTitle } from '../shell/page-title.tsx';
import { FactorCard } from './factor-card.tsx';
import { EmailCard } from './email-card.tsx';
import { PasswordCard } from './password-card.tsx';
import { SessionsCard } from './sessions-card.tsx';

/** The user's own account: password, e-mail address, one-time codes, sessions. */
export function AccountPage() {
  return (
    <Stack gap="md" maw={720}>
      <PageTitle>Your account</PageTitle>
      <PasswordCard />
      <EmailCard />
      <FactorCard />
      <SessionsCard />
    </Stack>
  );
}
