//! A token of a server that does not know us yet: the two requests without one.

use crate::config::Access;
use crate::decoding::decode;
use crate::door::{Ask, Door, RETRY_SECONDS, nothing};
use crate::error::{Fallible, invalid};
use crate::generated::api;
use crate::generated::sentences::sentences;
use crate::inputs::segment;
use crate::options::{awaited, setters};

const CODE_LENGTH_MAX: usize = 200; // of a link

/// An account of one's own. Its `token` is shown this once, or there is none when it was mailed. Asked once: whether a cut request made the account,
/// only its owner can know.
pub fn sign_up(base_url: impl Into<String>, email: impl Into<String>, account_name: impl Into<String>) -> SignUp {
    let request = api::SignUp { email: email.into(), account_name: account_name.into(), invitation: None };
    SignUp { base_url: base_url.into(), request }
}

/// An account, to be made with `.await`.
#[must_use = "nothing is made before .await"]
pub struct SignUp {
    base_url: String,
    request: api::SignUp,
}

impl SignUp {
    setters! {
        /// Of the server's owner, where one is needed.
        invitation: String => request.invitation;
    }

    async fn send(self) -> Fallible<api::SignedUp> {
        let door = Door::new(&Access::stranger(&self.base_url)?, RETRY_SECONDS, None)?;
        decode(&door.ask(&format!("{}/internal/signup", door.base_url), Ask::post(&self.request)?).await?)
    }
}

awaited!(SignUp => api::SignedUp);

/// With a one-time link: the server's address, and a token that is shown this once. Asked once, since the link is used up by it.
pub async fn log_in(link: &str) -> Fallible<(String, api::LoggedIn)> {
    let found = link.trim().rsplit_once("/login/").filter(|(_, code)| is_code(code));
    let (before, code) = found.ok_or_else(|| invalid(sentences::BAD_LINK))?;
    let door = Door::new(&Access::stranger(before)?, RETRY_SECONDS, None)?;
    let url = format!("{}/login/{}", door.base_url, segment(code)?);
    let logged_in = decode(&door.ask(&url, Ask::post(&nothing())?).await?)?;
    Ok((door.base_url, logged_in))
}

/// What an address takes as it stands.
fn is_code(text: &str) -> bool {
    (1..=CODE_LENGTH_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_no_link_is_not_asked_for() {
        for bad in ["", "http://x/login/", "http://x/login/a/b", "http://x/login/a?b", "http://x/log/a"] {
            assert_eq!(log_in(bad).await.unwrap_err().message, sentences::BAD_LINK);
        }
    }
}
