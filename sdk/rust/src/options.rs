//! How requests are written down here: what may be given has a method each, and `.await` sends it.

/// Methods that set one field of a request each.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $kind:ty => $($place:ident).+;)*) => {
        $(
            $(#[$doc])*
            pub fn $name(mut self, $name: impl Into<$kind>) -> Self {
                self.$($place).+ = Some($name.into());
                self
            }
        )*
    };
}

/// Methods that set pairs of texts: one more, and all at once.
macro_rules! pairs {
    ($($(#[$doc:meta])* $one:ident, $all:ident => $($place:ident).+;)*) => {
        $(
            $(#[$doc])*
            ///
            /// One more.
            pub fn $one(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
                self.$($place).+.get_or_insert_default().insert(name.into(), value.into());
                self
            }

            $(#[$doc])*
            ///
            /// All of them, in place of those given before.
            pub fn $all<N: Into<String>, V: Into<String>>(mut self, $all: impl IntoIterator<Item = (N, V)>) -> Self {
                self.$($place).+ = Some($all.into_iter().map(|(name, value)| (name.into(), value.into())).collect());
                self
            }
        )*
    };
}

/// Methods that set a list.
macro_rules! lists {
    ($($(#[$doc:meta])* $name:ident: $kind:ty => $($place:ident).+;)*) => {
        $(
            $(#[$doc])*
            pub fn $name<T: Into<$kind>>(mut self, $name: impl IntoIterator<Item = T>) -> Self {
                self.$($place).+ = Some($name.into_iter().map(Into::into).collect());
                self
            }
        )*
    };
}

/// `.await` on a request sends it: that is its method `send`.
macro_rules! awaited {
    ($name:ident => $output:ty) => {
        impl std::future::IntoFuture for $name {
            type Output = $crate::Fallible<$output>;
            type IntoFuture = futures::future::BoxFuture<'static, Self::Output>;

            fn into_future(self) -> Self::IntoFuture {
                Box::pin(self.send())
            }
        }
    };
    ($name:ident<$life:lifetime> => $output:ty) => {
        impl<$life> std::future::IntoFuture for $name<$life> {
            type Output = $crate::Fallible<$output>;
            type IntoFuture = futures::future::BoxFuture<$life, Self::Output>;

            fn into_future(self) -> Self::IntoFuture {
                Box::pin(self.send())
            }
        }
    };
}

/// A request that is a stream itself: it begins, by its method `start`, when it is first asked for something.
macro_rules! streamed {
    ($name:ident => $item:ty) => {
        impl futures::Stream for $name {
            type Item = $crate::Fallible<$item>;

            fn poll_next(self: std::pin::Pin<&mut Self>, context: &mut std::task::Context<'_>) -> std::task::Poll<Option<Self::Item>> {
                let this = self.get_mut();
                if this.running.is_none() {
                    let running = this.start();
                    this.running = Some(running);
                }
                match &mut this.running {
                    Some(running) => futures::StreamExt::poll_next_unpin(running, context),
                    None => std::task::Poll::Ready(None),
                }
            }
        }
    };
}

pub(crate) use {awaited, lists, pairs, setters, streamed};

use crate::error::Fallible;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt, TryStreamExt, iter, try_unfold};

/// What a stream of pages asks for: behind what to go on, and what came with where to go on next.
pub(crate) type Page<T, At> = BoxFuture<'static, Fallible<(Vec<T>, Option<At>)>>;

/// Page after page, as one stream.
pub(crate) fn paged<T, At>(first: At, page: impl Fn(At) -> Page<T, At> + Send + 'static) -> BoxStream<'static, Fallible<T>>
where
    T: Send + 'static,
    At: Send + 'static,
{
    let pages = try_unfold(Some(first), move |at| {
        let asked = at.map(&page);
        async move {
            match asked {
                Some(asked) => asked.await.map(Some),
                None => Ok(None),
            }
        }
    });
    pages.map_ok(|items| iter(items).map(Ok)).try_flatten().boxed()
}
